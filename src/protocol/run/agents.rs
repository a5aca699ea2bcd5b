//! Runs the commands about agents. Each answers with all agents as they are afterwards.

use super::{Answer, answer};
use crate::engine::Engine;
use crate::engine::editors::Identity;
use crate::model::Result;
use crate::protocol::answers::{AgentList, Done};
use crate::protocol::commands;

pub async fn list(engine: &Engine) -> Result<Answer> {
    let agents = engine.agent_activities().await?.into_iter().map(Into::into).collect();
    let sets = engine.views().borrow().sets().cloned().collect();
    answer::<commands::Agents>(AgentList { agents, sets })
}

pub async fn set(engine: &Engine, params: commands::AgentSet) -> Result<Answer> {
    engine.set_agents(params.agent.as_deref(), params.set)?;
    list(engine).await
}

pub async fn pause(engine: &Engine, params: &commands::AgentPause) -> Result<Answer> {
    engine.pause_agent(&params.agent, params.paused)?;
    list(engine).await
}

pub async fn disconnect(engine: &Engine, params: &commands::AgentDisconnect) -> Result<Answer> {
    engine.disconnect_agent(&params.agent)?;
    list(engine).await
}

pub async fn away(engine: &Engine) -> Result<Answer> {
    answer::<commands::Away>(engine.away().await?.into())
}

pub async fn allow_next(engine: &Engine, identity: &Identity, params: &commands::AwayAllow) -> Result<Answer> {
    engine.allow_next(&params.call_id.0, identity).await?;
    answer::<commands::AwayAllow>(Done {})
}
