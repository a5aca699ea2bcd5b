//! The proof that a call went through the rules.

use crate::model::ToolCall;

/// A call that policy and, where needed, the user have let pass. Only this module makes one, and `Server::call` takes
/// nothing else: a second way to a tool does not compile.
#[derive(Debug, Clone)]
pub struct Permitted {
    call: ToolCall,
}

impl Permitted {
    pub fn call(&self) -> &ToolCall {
        &self.call
    }
}
