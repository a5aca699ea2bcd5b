//! The address of the last page of a sign-in, which the user pastes if the browser is on another machine and cannot reach
//! this one. It contains a code that is as good as a token, so no error and no log contains it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;
use url::Url;

use super::callback::parameter;

/// The sign-ins of one server that wait for the browser. Cheap to clone; all clones share them.
#[derive(Clone, Default)]
pub struct OpenSignIns {
    /// Private, and never locked over an await.
    waiting: Arc<Mutex<Vec<OpenSignIn>>>,
}

struct OpenSignIn {
    redirect: Url,
    state: String,
    pasted: oneshot::Sender<Url>,
}

impl OpenSignIns {
    /// Waits for the address that the issuer sends the browser to. Dropping the receiver ends it.
    pub fn expect(&self, redirect: Url, state: String) -> oneshot::Receiver<Url> {
        let (pasted, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|other| !other.pasted.is_closed());
        waiting.push(OpenSignIn { redirect, state, pasted });
        receiver
    }

    /// Passes an address on to the sign-in that it belongs to. Otherwise that sign-in keeps waiting.
    pub fn paste(&self, address: &str) -> Result<(), String> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|one| !one.pasted.is_closed());
        let Some(newest) = waiting.last() else {
            return Err("no sign-in is waiting for this address; start a new one".to_owned());
        };
        let url = Url::parse(address.trim()).map_err(|_| "this is not an address; paste all of it".to_owned())?;
        let is_last_page = |one: &OpenSignIn| {
            let page = |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port());
            page(&one.redirect) == page(&url) && one.redirect.path() == url.path()
        };
        if !waiting.iter().any(is_last_page) {
            let expected = &newest.redirect;
            return Err(format!("this is not the address of the last page, which begins with `{expected}`"));
        }
        let state = parameter(&url, "state");
        match waiting.iter().position(|one| is_last_page(one) && Some(&one.state) == state.as_ref()) {
            Some(index) if ["code", "error"].iter().any(|name| parameter(&url, name).is_some()) => {
                // The sign-in may have ended a moment ago; its own answer says how.
                waiting.swap_remove(index).pasted.send(url).ok();
                Ok(())
            }
            Some(_) => Err("the address is not complete; paste all of it".to_owned()),
            None => Err("this page does not belong to the current sign-in".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_page_of_the_current_sign_in_is_passed_on() {
        let sign_ins = OpenSignIns::default();
        let page = "http://127.0.0.1:7/callback";
        let refused = sign_ins.paste(&format!("{page}?code=c-1&state=s")).unwrap_err();
        assert!(refused.contains("no sign-in is waiting"), "{refused}");

        let mut waits = sign_ins.expect(Url::parse(page).unwrap(), "s".to_owned());
        for (address, why) in [
            ("c-1", "not an address"),
            ("https://issuer.example/authorize?code=c-1&state=s", "begins with `http://127.0.0.1:7/callback`"),
            ("http://127.0.0.1:8/callback?code=c-1&state=s", "not the address of the last page"),
            ("https://127.0.0.1:7/callback?code=c-1&state=s", "not the address of the last page"),
            ("http://issuer.example:7/callback?code=c-1&state=s", "not the address of the last page"),
            ("http://127.0.0.1:7/other?code=c-1&state=s", "not the address of the last page"),
            ("http://127.0.0.1:7/callback?code=c-1&state=other", "not belong to the current sign-in"),
            ("http://127.0.0.1:7/callback?code=c-1", "not belong to the current sign-in"),
            ("http://127.0.0.1:7/callback?state=s", "not complete"),
        ] {
            let refused = sign_ins.paste(address).unwrap_err();
            assert!(refused.contains(why) && !refused.contains("c-1"), "{address}: {refused}");
            assert!(waits.try_recv().is_err(), "{address}");
        }
        sign_ins.paste(&format!("  {page}?state=s&code=c-1\n")).unwrap();
        assert_eq!(waits.try_recv().unwrap().query(), Some("state=s&code=c-1"));
        assert!(sign_ins.paste(&format!("{page}?code=c-1&state=s")).is_err(), "an address counts once");
    }

    #[test]
    fn an_address_reaches_the_sign_in_that_it_belongs_to() {
        let sign_ins = OpenSignIns::default();
        let page = |port| Url::parse(&format!("http://127.0.0.1:{port}/callback")).unwrap();
        let mut one = sign_ins.expect(page(7), "one".to_owned());
        let mut two = sign_ins.expect(page(8), "two".to_owned());
        sign_ins.paste("http://127.0.0.1:7/callback?code=c&state=one").unwrap();
        assert!(one.try_recv().is_ok() && two.try_recv().is_err());
        drop(two);
        let refused = sign_ins.paste("http://127.0.0.1:8/callback?code=c&state=two").unwrap_err();
        assert!(refused.contains("no sign-in is waiting"), "{refused}");
    }
}
