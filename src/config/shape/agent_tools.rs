//! `agentTools`: the levels of agents' own tools.

use super::keys::{AGENT_TOOLS, ANY_AGENT};
use super::reader::Reader;
use super::tools;
use crate::config::problem::{Code, Problem};
use crate::config::spec::{AgentToolRules, LevelRule};
use crate::config::tree::{Member, Node};
use crate::model::HookAgent;
use crate::text::lines::LineIndex;

pub fn agent_tools(reader: &mut Reader<'_>, node: &Node, lines: &LineIndex) -> Vec<AgentToolRules> {
    let Some(fields) = reader.object(node, &AGENT_TOOLS) else { return Vec::new() };
    let agents = HookAgent::ALL.into_iter().map(|agent| (Some(agent), agent.as_str()));
    let named = agents.chain([(None, ANY_AGENT)]).filter_map(|(agent, key)| Some((agent, fields.get(key)?)));
    named.map(|(agent, member)| reader.in_key(member, |reader| of_agent(reader, agent, member, lines))).collect()
}

fn of_agent(reader: &mut Reader<'_>, agent: Option<HookAgent>, member: &Member, lines: &LineIndex) -> AgentToolRules {
    // A permission in a project never takes effect, so it is reported here and not as one that waits for trust.
    let restricts = std::mem::replace(&mut reader.restricts, reader.scope.needs_trust());
    let (tools, rule_lines) = tools::object(reader, &member.value, lines);
    reader.restricts = restricts;
    if reader.scope.needs_trust() {
        for rule in tools.iter().filter(|rule| allows(&rule.level)) {
            let written = member.value.get(&rule.pattern).map_or(&member.key.span, |rule| &rule.value.span);
            let message = "a project cannot allow an agent's own tools, only restrict them";
            reader.report(Problem::new(Code::OnlyRestricts, written.clone(), message.to_owned()));
        }
    }
    let line = lines.line(member.key.span.start);
    AgentToolRules { agent, scope: reader.scope, file: None, folder: None, line, rule_lines, tools }
}

fn allows(rule: &LevelRule) -> bool {
    rule.rest.widens() || rule.cases.iter().any(|case| case.level.widens())
}
