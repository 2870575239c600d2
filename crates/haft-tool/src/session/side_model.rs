//! A model that is asked beside the conversation: one question, one answer, no tools.

use futures::future::BoxFuture;
use haft_types::ToolError;

use crate::Cx;

/// A question to a model that knows nothing but it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideQuestion {
    /// What it is told first.
    pub system: String,
    /// What it answers from, such as a page; its end is left out where it is too long.
    pub data: String,
    /// What is asked behind that.
    pub question: String,
}

/// The answer of a model beside the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideReply {
    /// Its words.
    pub text: String,
    /// Its name, in the form that `--model` takes.
    pub model: String,
    /// Dollars that it cost; none where the price is not known.
    pub cost_usd: Option<f64>,
    /// Whether it got only the first part of the data, for its window.
    pub is_cut: bool,
    /// What else is to be said, such as why it was not the small model.
    pub notes: Vec<String>,
}

/// A service of a session that has a model.
pub trait SideModel: Send + Sync {
    /// Asks the small model that the settings name, or the agent's own.
    ///
    /// # Errors
    /// When no model answers, or the money does not buy it.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    fn ask<'a>(
        &'a self,
        cx: &'a Cx,
        asked: SideQuestion,
    ) -> BoxFuture<'a, Result<SideReply, ToolError>>;
}
