//! One request of a rehearsal: when it comes, how long it is, and what it shares with others.

/// The beginning of a prompt that other requests have too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// Requests of one group begin with the same tokens.
    pub group: u32,
    /// Tokens that are the same.
    pub tokens: u32,
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Request {
    /// Seconds after the beginning.
    pub at: f64,
    /// Tokens of the prompt.
    pub input: u32,
    /// Tokens of the answer, as many as it will have.
    pub output: u32,
    /// What it begins with.
    pub prefix: Option<Prefix>,
    /// The conversation that it goes on with: its tokens are those of the same conversation's earlier requests, and of their
    /// answers, as far as these went.
    pub session: Option<u32>,
    /// Seconds after which the client hangs up.
    pub cancel: Option<f64>,
    /// Tokens of the answer after which the client hangs up.
    pub cancel_tokens: Option<u32>,
    /// Smaller goes first, where the engine schedules by priority.
    pub priority: i32,
    /// Whose it is.
    pub tenant: u32,
}

/// Groups, conversations and requests share one space of names for contents, and each has a part of it.
const CONVERSATIONS: u64 = 1 << 62;
const OWN: u64 = 1 << 63;

/// Whether a name is one of a request alone.
pub(crate) const fn is_own(name: u64) -> bool {
    name & OWN != 0
}

impl Request {
    /// A name for what stands in the block at this index of a group of layers: two blocks with the same tokens, and the same
    /// before them, have the same one. `number` is the place of the request in its list.
    #[must_use]
    pub(crate) fn content(&self, number: u32, group: u32, index: u32, block_size: u32) -> u64 {
        let ends = u64::from(index).saturating_add(1).saturating_mul(u64::from(block_size));
        let index = u64::from(group & 0x3F) << 24 | u64::from(index) & 0xFF_FFFF;
        match (self.prefix, self.session) {
            (Some(p), _) if ends <= u64::from(p.tokens.min(self.input)) => u64::from(p.group) << 30 | index,
            (_, Some(s)) => CONVERSATIONS | u64::from(s) << 30 | index,
            _ => OWN | u64::from(number) << 30 | index,
        }
    }

    /// All tokens that it will have.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.input.saturating_add(self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_tokens_have_the_same_name() {
        let of = |prefix, session| Request { input: 100, prefix, session, ..Request::default() };
        let shared = of(Some(Prefix { group: 3, tokens: 40 }), None);
        assert_eq!(shared.content(1, 0, 1, 16), shared.content(2, 0, 1, 16));
        assert_ne!(
            shared.content(1, 0, 2, 16),
            shared.content(2, 0, 2, 16),
            "tokens 32 to 47 are not all shared"
        );
        let (a, b) = (of(None, Some(3)), of(None, Some(4)));
        assert_eq!(a.content(1, 0, 5, 16), a.content(2, 0, 5, 16));
        assert_ne!(a.content(1, 0, 5, 16), b.content(1, 0, 5, 16));
        assert_ne!(a.content(1, 0, 0, 16), shared.content(1, 0, 0, 16));
    }
}
