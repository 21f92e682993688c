//! How long a caller may take for the head of a request.
//!
//! hyper asks for a timer for each head and drops it when the head is there. A new timer of tokio takes a place in its wheel, under
//! a lock, and wakes its own thread where it is the next one due: a call of the kernel and a turn for nothing. Here a connection
//! has one, which each head puts off.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

type One = Pin<Box<tokio::time::Sleep>>;

/// The timer of one connection.
#[derive(Clone, Default)]
pub(crate) struct Patience(Arc<Mutex<Option<One>>>);

impl Patience {
    fn with<T>(&self, f: impl FnOnce(&mut Option<One>) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Timer for Patience {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let one = match self.with(Option::take) {
            Some(mut one) => {
                one.as_mut().reset(deadline.into());
                one
            }
            None => Box::pin(tokio::time::sleep_until(deadline.into())),
        };
        Box::pin(Lent { one: Some(one), back: self.clone() })
    }
}

/// It, while a head is awaited.
struct Lent {
    one: Option<One>,
    back: Patience,
}

impl Future for Lent {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.one.as_mut().map_or(Poll::Ready(()), |one| one.as_mut().poll(cx))
    }
}

impl Sleep for Lent {}

impl Drop for Lent {
    fn drop(&mut self) {
        let one = self.one.take();
        self.back.with(|waiting| *waiting = one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_head_has_its_whole_time_by_one_timer() {
        let patience = Patience::default();
        let second = Duration::from_secs(1);
        let began = tokio::time::Instant::now();
        for _ in 0..3 {
            // Each head comes in time; the next one's wait begins anew.
            let mut wait = patience.sleep_until((tokio::time::Instant::now() + second).into_std());
            tokio::select! {
                () = &mut wait => panic!("too soon"),
                () = tokio::time::sleep(second * 9 / 10) => {}
            }
            drop(wait);
            assert!(patience.with(|one| one.is_some()), "it was not kept");
        }
        // One that does not come, also after the timer went off while nobody waited for a head.
        tokio::time::sleep(second * 5).await;
        patience.sleep_until((tokio::time::Instant::now() + second).into_std()).await;
        assert_eq!(began.elapsed().as_millis(), 3 * 900 + 5000 + 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_may_come_nearer() {
        let patience = Patience::default();
        drop(patience.sleep(Duration::from_secs(60)));
        let began = tokio::time::Instant::now();
        patience.sleep_until((began + Duration::from_secs(2)).into_std()).await;
        assert_eq!(began.elapsed().as_secs(), 2);
    }
}
