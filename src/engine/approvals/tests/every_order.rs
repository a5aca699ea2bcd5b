//! All short orders of events, shortest first: a failure therefore shows a smallest example. Longer ones are found at
//! random by the property test.

use super::*;

const LONGEST: u32 = 3;

#[test]
fn every_order_of_a_few_events_ends_each_question_in_one_way() {
    let events = [
        Event::Ask { agent_can_ask: true },
        Event::Answer(0, 0, Decision::AllowOnce),
        Event::Answer(0, 1, Decision::Deny),
        Event::AnswerSeveral([0, 1], 0, Decision::AllowOnce),
        Event::Close(0, 0),
        Event::AgentAnswers(0, AgentAnswer::Allow),
        Event::OwnerEnds(0),
        Event::Withdraw(0),
        Event::EditorOpens(1),
        Event::EditorCloses(0),
        Event::Wait(TIMEOUT),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    for length in 0..=LONGEST {
        for number in 0..events.len().pow(length) {
            let mut order = vec![Event::EditorOpens(0), Event::Ask { agent_can_ask: number % 2 == 0 }];
            order.extend((0..length).map(|place| events[number / events.len().pow(place) % events.len()]));
            for ask_agent in ["without-editor", "always"] {
                let replayed = std::panic::AssertUnwindSafe(|| runtime.block_on(replay(ask_agent, &order)));
                assert!(std::panic::catch_unwind(replayed).is_ok(), "{ask_agent}: {order:?}");
            }
        }
    }
}
