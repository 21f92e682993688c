//! What a caller is told: admitted, queued or refused, with the numbers that decided.

use std::fmt;

use crate::Ms;

/// One request in the hands of [`crate::Admission`], until it is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What becomes of a request now.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Send it to this server.
    Admit(Grant),
    /// It waits; [`crate::Admission::poll`] tells when it goes on.
    Queue(Place),
    /// It is not taken.
    Refuse(Refusal),
}

/// Leave to send a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// To be released exactly once.
    pub ticket: Ticket,
    /// To which server, by its number.
    pub server: usize,
    /// How long it waited.
    pub waited: Ms,
    /// Tokens of KV cache that it is counted with.
    pub kv: u64,
    /// In shadow mode: what would have become of it.
    pub would: Would,
}

/// What would have become of a request, had the guard been armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Would {
    /// Sent.
    Admit,
    /// Queued.
    Queue,
    /// Refused for this.
    Refuse(Code),
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// To ask about it.
    pub ticket: Ticket,
    /// Requests of its pool that wait.
    pub waiting: usize,
    /// How long it will wait, where the queue's model can tell.
    pub expected: Option<Ms>,
}

/// Why a request is refused. The words are stable: they stand in answers and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// No server could ever hold it in its KV cache.
    KvNeverFits,
    /// No server could ever hold it in host RAM.
    HostNeverFits,
    /// The queue is full.
    QueueFull,
    /// This tenant's part of the queue is full.
    TenantQueueFull,
    /// It would wait longer than it may.
    WaitTooLong,
    /// It waited as long as it may.
    QueueTimeout,
    /// A tenant that has less made room for itself.
    PushedOut,
    /// No server is up.
    NoServer,
    /// This guard is about to end.
    Draining,
}

impl Code {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::KvNeverFits,
        Self::HostNeverFits,
        Self::QueueFull,
        Self::TenantQueueFull,
        Self::WaitTooLong,
        Self::QueueTimeout,
        Self::PushedOut,
        Self::NoServer,
        Self::Draining,
    ];

    /// As answers and metrics say it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::KvNeverFits => "kv_never_fits",
            Self::HostNeverFits => "host_never_fits",
            Self::QueueFull => "queue_full",
            Self::TenantQueueFull => "tenant_queue_full",
            Self::WaitTooLong => "wait_too_long",
            Self::QueueTimeout => "queue_timeout",
            Self::PushedOut => "pushed_out",
            Self::NoServer => "no_server",
            Self::Draining => "draining",
        }
    }

    /// Status of the answer.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::KvNeverFits | Self::HostNeverFits => 413,
            Self::QueueFull
            | Self::TenantQueueFull
            | Self::WaitTooLong
            | Self::QueueTimeout
            | Self::PushedOut => 429,
            Self::NoServer | Self::Draining => 503,
        }
    }
}

/// The numbers of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// What the request needs: tokens, bytes or milliseconds, by the code.
    pub needs: u64,
    /// What there is of it.
    pub limit: u64,
    /// The prompt's tokens, at least.
    pub prompt: u64,
    /// The most tokens of output for each sequence that would fit; 0 where the prompt alone does not.
    pub would_fit: u64,
}

/// A request that is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub code: Code,
    /// When to come again, whole seconds; `None` where that would not help.
    pub retry_after: Option<u64>,
    /// The numbers.
    pub numbers: Numbers,
}

impl fmt::Display for Refusal {
    /// A sentence for the caller: what was asked, what there is, what would fit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = &self.numbers;
        match self.code {
            Code::KvNeverFits if n.would_fit == 0 => write!(
                f,
                "the prompt has at least {} tokens, and the KV cache of the largest server holds {}; shorten the prompt",
                n.prompt, n.limit
            ),
            Code::KvNeverFits => write!(
                f,
                "prompt and output need up to {} tokens of KV cache, and the largest server holds {}; with at most {} \
                 tokens of output (max_tokens) it fits",
                n.needs, n.limit, n.would_fit
            ),
            Code::HostNeverFits => write!(
                f,
                "the request needs some {} of the server's RAM, and it may use {}; send a smaller body or fewer and smaller images",
                mebibytes(n.needs),
                mebibytes(n.limit)
            ),
            Code::QueueFull => {
                write!(f, "the servers are at the limit of their memory and the queue is full ({} of {} waiting)", n.needs, n.limit)
            }
            Code::TenantQueueFull => {
                write!(f, "{} requests of this tenant wait already, and {} may", n.needs, n.limit)
            }
            Code::WaitTooLong => write!(
                f,
                "the servers are at the limit of their memory: the request would wait {} s, and it may wait {} s",
                seconds(n.needs),
                seconds(n.limit)
            ),
            Code::QueueTimeout => write!(
                f,
                "the servers are at the limit of their memory: the request waited {} s, as long as it may",
                seconds(n.needs)
            ),
            Code::PushedOut => f.write_str(
                "the queue is full and this tenant has the most in it, so its newest request made room for another tenant's",
            ),
            Code::NoServer => f.write_str("no server is up"),
            Code::Draining => f.write_str("this guard is about to end; send the request again"),
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

fn seconds(ms: Ms) -> String {
    format!("{}.{}", ms / 1000, ms % 1000 / 100)
}
