use serde_json::json;
use tokio::sync::mpsc;

use super::*;

/// An editor with a server inside, which keeps what it is sent.
struct Hosting {
    abilities: Abilities,
    identity: Identity,
    received: mpsc::UnboundedSender<Value>,
    /// It takes a message only with one of these permits.
    pace: Arc<tokio::sync::Semaphore>,
}

impl Editor for Hosting {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open_url(&self, _page: WebPage) -> BoxFuture<'static, bool> {
        std::future::ready(false).boxed()
    }

    fn to_sdk(&self, _server: String, message: Value) -> BoxFuture<'static, bool> {
        let (received, pace) = (self.received.clone(), self.pace.clone());
        async move {
            pace.acquire().await.unwrap().forget();
            received.send(message).is_ok()
        }
        .boxed()
    }
}

struct Scene {
    editors: Editors,
    attachment: Attachment,
    received: mpsc::UnboundedReceiver<Value>,
    pace: Arc<tokio::sync::Semaphore>,
}

fn scene() -> Scene {
    let (received, messages) = mpsc::unbounded_channel();
    let pace = Arc::new(tokio::sync::Semaphore::new(0));
    let abilities = Abilities { sdk_servers: vec!["inner".to_owned()], ..Abilities::default() };
    let editors = Editors::default();
    let hosting = Hosting { abilities, identity: Identity::default(), received, pace: pace.clone() };
    let attachment = editors.attach(Arc::new(hosting));
    Scene { editors, attachment, received: messages, pace }
}

#[tokio::test]
async fn a_second_connection_does_not_take_the_server_away_from_the_first() {
    let scene = scene();
    let first = scene.editors.tunnel("inner").ok().unwrap();
    assert_eq!(scene.editors.tunnel("inner").err(), Some(NoTunnel::InUse));
    assert_eq!(scene.editors.tunnel("other").err(), Some(NoTunnel::NoEditor));
    assert!(!first.from_editor.is_closed());
    drop(first);
    assert!(scene.editors.tunnel("inner").is_ok());
}

#[tokio::test]
async fn messages_to_and_from_a_slow_side_wait_for_room_and_keep_their_order() {
    let mut scene = scene();
    let mut tunnel = scene.editors.tunnel("inner").ok().unwrap();
    let to_editor: Vec<_> = (0..3 * TUNNEL).map(|number| tunnel.to_editor.send(json!(number))).collect();
    let to_engine: Vec<_> =
        (0..3 * TUNNEL).map(|number| scene.attachment.deliver_from_sdk("inner", json!(number))).collect();
    // The last ones are awaited first.
    let to_editor = tokio::spawn(futures::future::join_all(to_editor.into_iter().rev()));
    let to_engine = tokio::spawn(futures::future::join_all(to_engine.into_iter().rev()));
    scene.pace.add_permits(3 * TUNNEL);
    for number in 0..3 * TUNNEL {
        assert_eq!(scene.received.recv().await, Some(json!(number)));
        assert_eq!(tunnel.from_editor.recv().await, Some(json!(number)));
    }
    assert!(to_editor.await.unwrap().into_iter().chain(to_engine.await.unwrap()).all(|sent| sent));
    drop(tunnel);
    assert!(!scene.attachment.deliver_from_sdk("inner", json!({})).await);
}
