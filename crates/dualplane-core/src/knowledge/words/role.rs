//! What a word of a message about memory can be in it.

/// What a word can mean; several at once.
pub(super) type Roles = u64;

/// A card, or a library that allocates on it.
pub(super) const GPU: Roles = 1;
/// "device": a card's memory only beside words of memory.
pub(super) const DEVICE: Roles = 1 << 1;
/// The host's memory, or a program that has no other.
pub(super) const HOST: Roles = 1 << 2;
/// The cache of keys and values.
pub(super) const KV: Roles = 1 << 3;
/// What such a cache consists of.
pub(super) const PAGES: Roles = 1 << 4;
/// Memory, by any name.
pub(super) const MEMORY: Roles = 1 << 5;
/// A unit of memory.
pub(super) const UNIT: Roles = 1 << 6;
pub(super) const NUMBER: Roles = 1 << 7;
pub(super) const NOT: Roles = 1 << 8;
/// There is too little of what stands beside it.
pub(super) const LACK: Roles = 1 << 9;
pub(super) const FAIL: Roles = 1 << 10;
/// Allocates, and nothing else.
pub(super) const ALLOCATE: Roles = 1 << 11;
/// Allocates where memory is its object.
pub(super) const TAKE: Roles = 1 << 12;
pub(super) const EXCEED: Roles = 1 << 13;
pub(super) const LIMIT: Roles = 1 << 14;
pub(super) const FIT: Roles = 1 << 15;
pub(super) const KILL: Roles = 1 << 16;
pub(super) const OOM: Roles = 1 << 17;
/// What may happen, or is wanted not to.
pub(super) const HEDGE: Roles = 1 << 18;
/// What is handed out and is no memory.
pub(super) const OTHER: Roles = 1 << 19;
/// A figure or a setting of memory: "no memory limit" is no lack of it.
pub(super) const ABOUT: Roles = 1 << 20;
/// Stands between a word and the memory that it is of.
pub(super) const LINK: Roles = 1 << 21;
/// A card is gone or stands still.
pub(super) const GONE: Roles = 1 << 22;
/// A device, as part of the name of an error: `torch.OutOfMemoryError`.
pub(super) const OWNER: Roles = 1 << 23;
pub(super) const ENOUGH: Roles = 1 << 24;
pub(super) const OUT: Roles = 1 << 25;
pub(super) const OF: Roles = 1 << 26;
/// Ends of a process because of memory name a reason.
pub(super) const REASON: Roles = 1 << 27;
/// An interface whose names begin with it: `vkAllocateMemory`, `CL_OUT_OF_RESOURCES`.
pub(super) const PREFIX: Roles = 1 << 28;
pub(super) const ASKS: Roles = 1 << 29;
pub(super) const AVAILABLE: Roles = 1 << 30;

/// The host's, where memory stands behind it: "system memory".
pub(super) const HOST_BESIDE: Roles = 1 << 31;
pub(super) const ECC: Roles = 1 << 32;
pub(super) const UNCORRECTED: Roles = 1 << 33;
/// A limit that somebody set.
pub(super) const BOUND: Roles = 1 << 34;

/// What a server keeps in a cache of keys and values, and in no other.
pub(super) const TOKENS: Roles = 1 << 35;

/// "shared memory" is the host's in /dev/shm or a kernel's on the chip.
pub(super) const SHARED: Roles = 1 << 36;
/// A kernel of a card, whose shared memory no setting changes.
pub(super) const KERNEL: Roles = 1 << 37;
/// Says for what, not where.
pub(super) const FOR: Roles = 1 << 38;
/// What has a limit of memory that somebody set.
pub(super) const PROCESS: Roles = 1 << 39;

/// What the host's memory is given to as a whole: "process out of memory".
pub(super) const HOLDER: Roles = 1 << 41;
/// Gone, as part of the name of an error: `DEVICE_REMOVED`.
pub(super) const REMOVED: Roles = 1 << 42;
/// The program says that it goes on.
pub(super) const GOES_ON: Roles = 1 << 44;
/// Between two that are both meant.
pub(super) const AND: Roles = 1 << 43;
/// Ends the name of a source file.
pub(super) const FILE: Roles = 1 << 40;
