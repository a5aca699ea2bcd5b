//! The agents that are connected, as the wire shows them.

use crate::engine::agents::AgentActivity;
use crate::engine::asking::OpenCall;
use crate::engine::away::Away;
use crate::model::Subject;
use crate::protocol::answers::AwayReport;
use crate::protocol::types::{AgentCall, AgentFigures, AgentStatus};
use crate::store;
use crate::text::{counted, one_line, quoted};

impl From<AgentActivity> for AgentStatus {
    fn from(activity: AgentActivity) -> Self {
        let doing = doing(&activity);
        let AgentActivity { number, agent, knows_set, calls, figures } = activity;
        let problem = agent.set.as_deref().filter(|_| !knows_set);
        let problem = problem.map(|set| format!("config.toml has no set {}, so it has no tools", quoted(set, 80)));
        let call = |(call, question): (OpenCall, Option<String>)| AgentCall {
            call_id: call.id,
            server: call.tool.server,
            tool: call.tool.tool.to_string(),
            since: call.since,
            question,
        };
        Self {
            id: number.to_string(),
            name: agent.name,
            folder: agent.folder,
            since: agent.since,
            set: agent.set.map(|set| set.to_string()),
            problem,
            paused: agent.is_paused,
            doing,
            calls: calls.into_iter().map(call).collect(),
            today: figures.into(),
        }
    }
}

impl From<store::AgentFigures> for AgentFigures {
    fn from(figures: store::AgentFigures) -> Self {
        let store::AgentFigures { calls, denied, tokens } = figures;
        Self { calls, denied, tokens }
    }
}

/// What an agent is doing, in a few words. What waits for the user comes first.
fn doing(activity: &AgentActivity) -> String {
    let name = |call: &OpenCall| match call.tool.tool.strip_prefix(Subject::AGENT) {
        // Its own tool: the agent is already named.
        Some(own) => one_line(own, 80),
        None => one_line(&format!("{}/{}", call.tool.server, call.tool.tool), 80),
    };
    let calls = &activity.calls;
    let more = |shown: String| match calls.len() {
        0 | 1 => shown,
        count => format!("{shown} and {} more", count - 1),
    };
    let asked = calls.iter().find(|(_, question)| question.is_some());
    match (activity.agent.is_paused, asked, calls.first()) {
        (true, _, Some((call, _))) => more(format!("paused, {} waits", name(call))),
        (true, _, None) => "paused".to_owned(),
        (false, Some((call, _)), _) => more(format!("waits for you: {}", name(call))),
        (false, None, Some((call, _))) => more(format!("runs {}", name(call))),
        (false, None, None) => "idle".to_owned(),
    }
}

impl From<Away> for AwayReport {
    fn from(away: Away) -> Self {
        let agents: Vec<String> = away.agents.keys().map(|agent| one_line(agent, 80)).collect();
        let calls: u64 = away.agents.values().map(|figures| figures.calls).sum();
        let mut summary = format!(
            "While no editor was open, {} made {}",
            agents.join(", "),
            counted(usize::try_from(calls).unwrap_or(usize::MAX), "call")
        );
        match away.refused.len() {
            0 => summary.push('.'),
            1 => summary.push_str("; 1 was refused because there was no one to ask."),
            refused => summary.push_str(&format!("; {refused} were refused because there was no one to ask.")),
        }
        Self {
            since: away.since,
            until: away.until,
            summary: (calls > 0).then_some(summary),
            agents: away.agents.into_iter().map(|(name, figures)| (name, figures.into())).collect(),
            refused: away.refused.into_iter().map(Into::into).collect(),
        }
    }
}
