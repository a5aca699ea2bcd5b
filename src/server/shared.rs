//! Servers that do not depend on the workspace run once, however many workspaces use them.
//!
//! Each workspace holds a lease. Events go to all of them, and the roots are those of all. What else the server needs comes
//! from the workspace with the oldest lease. The server stops with the last lease.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::host::{Host, NoTunnel, Tunnel};
use super::oauth::TokenStore;
use super::{Context, Event, Inner, Server};
use crate::config::expand::{self, Reference};
use crate::config::spec::Input;
use crate::config::{Definition, Environment, Environments};
use crate::model::{CallId, Result, ServerName};
use crate::policy::trust::Trusted;
use crate::text::Secret;

/// How many events of a server can wait to be passed on.
const EVENT_QUEUE: usize = 1_024;

/// The servers that workspaces share. Cheap to clone; all clones share the list. The `std` locks are private to this file
/// and never held over an await.
#[derive(Clone, Default)]
pub struct SharedServers(Arc<Mutex<Vec<SharedServer>>>);

struct SharedServer {
    definition: Arc<Definition>,
    inputs: Arc<Vec<Input>>,
    server: Weak<Inner>,
    leases: Leases,
}

/// The leases of one server, oldest first. Once the last one has ended, there is never another.
#[derive(Clone, Default)]
struct Leases(Arc<Mutex<Vec<Holder>>>);

/// A workspace that uses the server.
struct Holder {
    generation: u64,
    events: mpsc::Sender<(ServerName, u64, Event)>,
    host: Arc<dyn Host>,
    /// The resources that it has subscribed to.
    subscribed: HashSet<String>,
}

/// The lease of one workspace. It ends when this is dropped.
pub(super) struct Lease {
    leases: Leases,
    /// Identifies the holder: no two hubs share the sender.
    events: mpsc::Sender<(ServerName, u64, Event)>,
    generation: u64,
}

impl SharedServers {
    /// The server of this definition, which is started if no workspace uses it yet. `is_alike` compares what a process
    /// depends on.
    pub fn spawn(
        &self,
        trusted: Trusted,
        generation: u64,
        context: Context,
        is_alike: fn(&Definition, &Definition) -> bool,
    ) -> Server {
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|shared| shared.server.strong_count() > 0);
        let definition = trusted.definition().clone();
        let is_same = |shared: &&SharedServer| {
            let alike = shared.definition.name == definition.name && is_alike(&shared.definition, &definition);
            alike && (!uses_inputs(&definition) || shared.inputs == context.inputs)
        };
        let found = servers.iter().filter(is_same).find_map(|shared| {
            let inner = shared.server.upgrade()?;
            Some(Server(inner, Some(Arc::new(shared.leases.join(generation, &context)?))))
        });
        if let Some(server) = found {
            let joined = server.clone();
            tokio::spawn(async move { joined.roots_changed().await });
            return server;
        }
        let (leases, lease) = Leases::first(generation, &context);
        let (events, received) = mpsc::channel(EVENT_QUEUE);
        tokio::spawn(leases.clone().pass_on(received));
        let inputs = context.inputs.clone();
        let Server(inner, _) =
            Server::spawn(trusted, generation, Context { host: Arc::new(leases.clone()), events, ..context });
        servers.push(SharedServer { definition, inputs, server: Arc::downgrade(&inner), leases });
        Server(inner, Some(Arc::new(lease)))
    }
}

fn uses_inputs(definition: &Definition) -> bool {
    let launches = [Some(&definition.spec.launch), definition.spec.fallback.as_ref()];
    let references = launches.into_iter().flatten().flat_map(expand::references);
    references.into_iter().any(|reference| matches!(reference, Reference::Input(_)))
}

impl Leases {
    fn first(generation: u64, context: &Context) -> (Self, Lease) {
        let leases = Self::default();
        let lease = leases.add(&mut leases.lock(), generation, context);
        (leases, lease)
    }

    /// Another lease. `None` if the last one has ended.
    fn join(&self, generation: u64, context: &Context) -> Option<Lease> {
        let mut holders = self.lock();
        (!holders.is_empty()).then(|| self.add(&mut holders, generation, context))
    }

    fn add(&self, holders: &mut Vec<Holder>, generation: u64, context: &Context) -> Lease {
        let (events, host) = (context.events.clone(), context.host.clone());
        holders.push(Holder { generation, events: events.clone(), host, subscribed: HashSet::new() });
        Lease { leases: self.clone(), events, generation }
    }

    /// Passes events on to all workspaces until the server has ended. No state is lost; a hub that is too busy misses
    /// other events, as those of its own servers.
    async fn pass_on(self, mut received: mpsc::Receiver<(ServerName, u64, Event)>) {
        while let Some((name, _, event)) = received.recv().await {
            let holders: Vec<_> = self.lock().iter().map(|holder| (holder.events.clone(), holder.generation)).collect();
            for (events, generation) in holders {
                let passed = (name.clone(), generation, event.clone());
                match event {
                    Event::State(_) => events.send(passed).await.unwrap_or_default(),
                    Event::Log { .. } | Event::ResourceUpdated { .. } | Event::Notification { .. } => {
                        events.try_send(passed).unwrap_or_default();
                    }
                }
            }
        }
    }

    /// The oldest workspace.
    fn host(&self) -> Arc<dyn Host> {
        self.lock().first().map_or_else(|| Arc::new(NoHost) as Arc<dyn Host>, |holder| holder.host.clone())
    }

    fn hosts(&self) -> Vec<Arc<dyn Host>> {
        self.lock().iter().map(|holder| holder.host.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Holder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    fn is_of(&self, holder: &Holder) -> bool {
        holder.generation == self.generation && holder.events.same_channel(&self.events)
    }

    /// Ends the lease. Returns whether it was the last one.
    pub fn end(&self) -> bool {
        let mut holders = self.leases.lock();
        holders.retain(|holder| !self.is_of(holder));
        holders.is_empty()
    }

    pub fn subscribed(&self, uri: &str) {
        if let Some(holder) = self.leases.lock().iter_mut().find(|holder| self.is_of(holder)) {
            holder.subscribed.insert(uri.to_owned());
        }
    }

    /// Returns whether no other workspace has subscribed to this resource.
    pub fn unsubscribed(&self, uri: &str) -> bool {
        let mut holders = self.leases.lock();
        if let Some(holder) = holders.iter_mut().find(|holder| self.is_of(holder)) {
            holder.subscribed.remove(uri);
        }
        !holders.iter().any(|holder| holder.subscribed.contains(uri))
    }
}

impl Server {
    /// Stops the server for good and returns when all of its processes have ended. A server that another workspace uses
    /// goes on.
    pub async fn shutdown(self) {
        match self.release() {
            true => self.0.ended.cancelled().await,
            false => self.roots_changed().await,
        }
    }

    /// The same before another definition takes its place: returns when it has ended in the other workspaces, too, which
    /// are about to replace it as well.
    pub async fn hand_over(self) {
        self.release();
        self.0.ended.cancelled().await;
    }

    /// Ends the lease. Returns whether the server stops.
    fn release(&self) -> bool {
        let is_last = self.1.as_ref().is_none_or(|lease| lease.end());
        if is_last {
            self.0.stop.cancel();
        }
        is_last
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end();
    }
}

/// The host of a server that is no longer used.
struct NoHost;

impl Host for NoHost {}

impl Host for Leases {
    fn roots(&self) -> Vec<Arc<Path>> {
        let mut roots: Vec<Arc<Path>> = Vec::new();
        for root in self.hosts().iter().flat_map(|host| host.roots()) {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        roots
    }

    fn private_folder(&self, server: &ServerName) -> PathBuf {
        self.host().private_folder(server)
    }

    fn can_sample(&self) -> bool {
        self.host().can_sample()
    }

    fn can_elicit(&self) -> bool {
        self.host().can_elicit()
    }

    fn elicit(&self, server: ServerName, calls: Vec<CallId>, params: Value) -> BoxFuture<'static, Result<Value>> {
        self.host().elicit(server, calls, params)
    }

    fn sample(&self, server: ServerName, params: Value) -> BoxFuture<'static, Result<Value>> {
        self.host().sample(server, params)
    }

    fn saved_input(&self, input: &Input) -> BoxFuture<'static, Option<Secret>> {
        self.host().saved_input(input)
    }

    fn input(&self, server: ServerName, input: Input) -> BoxFuture<'static, Option<Secret>> {
        self.host().input(server, input)
    }

    fn keyring(&self, definition: &Definition, name: String) -> BoxFuture<'static, Result<Option<Secret>, String>> {
        self.host().keyring(definition, name)
    }

    fn tokens(&self) -> Arc<dyn TokenStore> {
        self.host().tokens()
    }

    fn environments(&self) -> watch::Receiver<Arc<Environments>> {
        self.host().environments()
    }

    fn may_start(&self, definition: Arc<Definition>, environment: Environment) -> BoxFuture<'static, bool> {
        self.host().may_start(definition, environment)
    }

    fn tunnel(&self, name: &str) -> Result<Tunnel, NoTunnel> {
        let mut missing = NoTunnel::NoEditor;
        for host in self.hosts() {
            match host.tunnel(name) {
                Err(NoTunnel::NoEditor) => {}
                Err(NoTunnel::InUse) => missing = NoTunnel::InUse,
                found => return found,
            }
        }
        Err(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    struct InFolders(Vec<Arc<Path>>);

    impl Host for InFolders {
        fn roots(&self) -> Vec<Arc<Path>> {
            self.0.clone()
        }
    }

    fn workspace(folders: &[&str]) -> (Context, mpsc::Receiver<(ServerName, u64, Event)>) {
        let folders = folders.iter().map(|folder| Path::new(folder).into()).collect();
        let (events, received) = mpsc::channel(8);
        let settings = watch::channel(Arc::new(Settings::default())).1;
        (Context::new(settings, Arc::new(InFolders(folders)), events), received)
    }

    #[tokio::test]
    async fn a_shared_server_belongs_to_all_workspaces_until_the_last_one_leaves() {
        let ((one, mut of_one), (other, mut of_other)) = (workspace(&["/a", "/b"]), workspace(&["/b", "/c"]));
        let (leases, first) = Leases::first(7, &one);
        let second = leases.join(3, &other).unwrap();
        assert_eq!(leases.roots(), ["/a", "/b", "/c"].map(|folder| Path::new(folder).into()));

        let (events, received) = mpsc::channel(8);
        tokio::spawn(leases.clone().pass_on(received));
        let updated = Event::ResourceUpdated { uri: "notes://1".to_owned() };
        events.send((ServerName::new("own").unwrap(), 0, updated)).await.unwrap();
        assert_eq!((of_one.recv().await.unwrap().1, of_other.recv().await.unwrap().1), (7, 3));

        first.subscribed("notes://1");
        second.subscribed("notes://1");
        assert!(!first.unsubscribed("notes://1"), "the other workspace still wants it");
        assert!(second.unsubscribed("notes://1"));

        assert!(!first.end());
        assert_eq!(leases.roots(), ["/b", "/c"].map(|folder| Path::new(folder).into()));
        assert!(second.end());
        assert!(leases.join(8, &one).is_none(), "it is stopping");
        assert!(leases.roots().is_empty());
    }
}
