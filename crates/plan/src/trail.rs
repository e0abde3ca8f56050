//! The chain from metadata to decision, for `explain`.

use serde::Serialize;

/// One link of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What was asked: `owner`, `architecture`, `release image`.
    pub question: &'static str,
    /// The answer with its proof.
    pub answer: String,
}

/// Collects steps, or nothing where nobody asks for them.
#[derive(Debug, Default)]
pub(crate) struct Trail(Option<Vec<Step>>);

impl Trail {
    pub(crate) fn recording() -> Self {
        Self(Some(Vec::new()))
    }

    pub(crate) fn note(&mut self, question: &'static str, answer: impl FnOnce() -> String) {
        if let Some(steps) = &mut self.0 {
            steps.push(Step { question, answer: answer() });
        }
    }

    pub(crate) fn into_steps(self) -> Vec<Step> {
        self.0.unwrap_or_default()
    }
}
