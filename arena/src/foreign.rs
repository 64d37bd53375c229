//! Memory that lies outside of every arena and is counted on a tag all the same: values that own what they own.
//!
//! Invariant: `counted` bytes, a multiple of a block's least size, are charged to `tag`, which a handle keeps.
#![forbid(unsafe_code)]

use crate::buffer::unwind;
use crate::current;
use crate::tag::Tag;

/// What is counted at once, so that small growth costs no atomic operation each time. A multiple of 64.
const STEP: usize = 4096;

/// An account of bytes that its owner holds elsewhere, on the tag that was current when it first had some; given back when
/// it is dropped, on whatever thread. Where no tag is current it counts nothing.
#[derive(Debug, Default)]
pub struct Foreign {
    tag: Option<Tag>,
    counted: usize,
}

impl Foreign {
    /// Sees to it that at least `bytes` are counted.
    ///
    /// # Panics
    /// If the tag's cap would be exceeded: unwinds with [`crate::OutOfMemory`] as its payload, as an allocation does, with
    /// what was counted before as it was.
    #[inline]
    pub fn cover(&mut self, bytes: usize) {
        if bytes > self.counted {
            self.charge(bytes);
        }
    }

    /// Gives back what is counted beyond `bytes`.
    pub fn fit(&mut self, bytes: usize) {
        let needed = bytes.next_multiple_of(64);
        if let Some(tag) = self.tag.as_ref().filter(|_| needed < self.counted) {
            tag.uncharge(self.counted - needed);
            self.counted = needed;
        }
    }

    #[cold]
    fn charge(&mut self, bytes: usize) {
        if self.tag.is_none() {
            self.tag = current::tag();
        }
        let Some(tag) = &self.tag else { return };
        let more = (bytes - self.counted).next_multiple_of(STEP);
        match tag.charge(more) {
            Ok(()) => self.counted += more,
            Err(refused) => unwind(refused),
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.fit(0);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::OutOfMemory;

    #[test]
    fn what_lies_elsewhere_is_counted_capped_and_given_back() {
        let tag = Tag::with_cap("values", Some(2 * STEP));
        let mut account = Foreign::default();
        {
            let _entered = tag.enter();
            account.cover(1);
            account.cover(100);
        }
        assert_eq!(tag.live_bytes(), STEP);
        // It stays where it began.
        account.cover(STEP + 1);
        assert_eq!(tag.live_bytes(), 2 * STEP);
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| account.cover(2 * STEP + 1)));
        let refused = refused.expect_err("beyond the cap");
        assert_eq!(refused.downcast_ref::<OutOfMemory>().map(|refused| refused.who.as_str()), Some("values"));
        assert_eq!(tag.live_bytes(), 2 * STEP);
        account.fit(65);
        assert_eq!(tag.live_bytes(), 128);
        std::thread::spawn(move || drop(account)).join().expect("the thread ends well");
        assert_eq!(tag.live_bytes(), 0);
        Foreign::default().cover(1 << 40);
    }
}
