//! Memory from the system: mappings aligned to 2 MiB, anonymous or backed by a file.
//!
//! Invariant: a [`Mapping`] owns `base..base + bytes` and gives it back when dropped. Pages are zero and not yet
//! touched; who touches them first decides their NUMA node.
//! Cost: a few system calls. Next stop: `chunk.rs`, what lies in a mapping.

use crate::layout;
use std::io;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How to map.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapOptions {
    /// Ask for huge pages.
    pub(crate) huge_pages: bool,
    /// Back mappings by unnamed files in this directory.
    pub(crate) directory: Option<PathBuf>,
    /// Pages come from this NUMA node only.
    pub(crate) numa_node: Option<u32>,
}

/// NUMA nodes that a set of them has room for.
const NODES: usize = 1024;

/// A piece of address space, aligned to 2 MiB.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    /// The file mapping of which `base..base + bytes` is a part; unmaps itself.
    file: Option<memmap2::MmapMut>,
}

impl Mapping {
    /// Maps `bytes`, a multiple of the page size. With `guard`, one more page that can't be touched follows.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn new(bytes: usize, guard: bool, options: &MapOptions) -> io::Result<Mapping> {
        let whole = if guard { bytes + page_bytes() } else { bytes };
        let mapping = match &options.directory {
            None => Mapping::anonymous(whole)?,
            Some(_) => Mapping::backed(whole, options)?,
        };
        if options.huge_pages && whole >= layout::CHUNK {
            // SAFETY: the range is ours and MADV_HUGEPAGE changes no content. It may fail where the system has
            // no huge pages; nothing depends on it.
            unsafe { libc::madvise(mapping.base.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
        }
        if let Some(node) = options.numa_node {
            mapping.bind(node)?;
        }
        if guard {
            // SAFETY: the last page of the range that we have just mapped, to which no reference exists.
            let rc = unsafe {
                let last = mapping.base.as_ptr().add(bytes);
                libc::mprotect(last.cast(), page_bytes(), libc::PROT_NONE)
            };
            if rc != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(mapping)
    }

    /// Has the system take its pages, none of which was touched yet, from one NUMA node.
    fn bind(&self, node: u32) -> io::Result<()> {
        let mut nodes = [0u64; NODES / 64];
        let word = nodes.get_mut(node as usize / 64).ok_or(io::ErrorKind::InvalidInput)?;
        *word = 1 << (node % 64);
        // SAFETY: the range is ours, and mbind changes no content; it reads `nodes`, which has the bits that we say.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.base.as_ptr(),
                self.bytes,
                libc::MPOL_BIND,
                nodes.as_ptr(),
                NODES as libc::c_ulong,
                0 as libc::c_uint,
            )
        };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Where it begins.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// How long it is, guard page included.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Cuts off what lies behind its first `bytes`, which are whole chunks; nothing, if there is no more, or it is part of a
    /// file.
    pub(crate) fn split(&mut self, bytes: usize) -> Option<Mapping> {
        debug_assert!(bytes > 0 && bytes.is_multiple_of(layout::CHUNK));
        if self.file.is_some() || bytes >= self.bytes {
            return None;
        }
        // SAFETY: within the range that we own, which `Mapping`s of its parts can own as well.
        let base = unsafe { self.base.add(bytes) };
        let rest = Mapping { base, bytes: self.bytes - bytes, file: None };
        self.bytes = bytes;
        Some(rest)
    }

    /// Whether the other begins where this one ends, so that they can be joined.
    pub(crate) fn touches(&self, next: &Mapping) -> bool {
        // Addresses alone say so: what is mapped by different calls is given back by one just as well.
        self.file.is_none() && next.file.is_none() && self.base.addr().get() + self.bytes == next.base.addr().get()
    }

    /// Joins a mapping with the one that it touches.
    pub(crate) fn join(&mut self, next: Mapping) {
        assert!(self.touches(&next), "only neighbours can be joined");
        self.bytes += next.bytes;
        std::mem::forget(next);
    }

    /// Gives the pages that lie whole in a range back to the system; those of a file only leave this process. The range stays mapped,
    /// and what it held is lost, or is not.
    ///
    /// # Safety
    /// Nobody reads what lies there before it is written anew.
    pub(crate) unsafe fn discard(&self, offset: usize, bytes: usize) {
        debug_assert!(offset + bytes <= self.bytes, "{offset}+{bytes} of {}", self.bytes);
        let page = page_bytes();
        let (start, end) = (offset.next_multiple_of(page), (offset + bytes) / page * page);
        if start < end {
            // SAFETY: whole pages of the range that we own; by the contract nobody misses what is in them. Refused, nothing changes.
            unsafe { libc::madvise(self.base.as_ptr().add(start).cast(), end - start, libc::MADV_DONTNEED) };
        }
    }

    fn anonymous(bytes: usize) -> io::Result<Mapping> {
        let mapped = layout::with_room_to_align(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new private mapping at an address of the system's choice touches nothing that exists.
        let raw = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if raw == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let raw: *mut u8 = raw.cast();
        let (lead, tail) = layout::cut_to_align(raw.addr(), mapped, bytes);
        // SAFETY: lead + bytes + tail = mapped, so both pieces lie within the mapping and outside what we keep;
        // both are whole pages (`bytes` is, and the system's address is). The base isn't null: mmap gave it.
        unsafe {
            let base = raw.add(lead);
            if lead > 0 {
                libc::munmap(raw.cast(), lead);
            }
            if tail > 0 {
                libc::munmap(base.add(bytes).cast(), tail);
            }
            Ok(Mapping { base: NonNull::new_unchecked(base), bytes, file: None })
        }
    }

    /// A shared mapping of a new file that has no name, so it vanishes with the mapping.
    fn backed(bytes: usize, options: &MapOptions) -> io::Result<Mapping> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let directory = options.directory.as_deref().expect("called only with a directory");
        let mapped = layout::with_room_to_align(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("kpg-arena-{}-{serial}", std::process::id()));
        let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        file.set_len(mapped as u64)?;
        // SAFETY: the file was created by us a moment ago and has no name, so nobody else shortens or writes it.
        let mut map = unsafe { memmap2::MmapOptions::new().len(mapped).map_mut(&file)? };
        let raw = map.as_mut_ptr();
        let (lead, _) = layout::cut_to_align(raw.addr(), mapped, bytes);
        // Room on the disk is claimed now: a full disk must be an error here and not a SIGBUS later. Only the
        // part that we keep: the rest stays a hole.
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        // SAFETY: a plain system call on a file descriptor that is open until the end of this function.
        let rc = unsafe { libc::posix_fallocate(fd, lead as libc::off_t, bytes as libc::off_t) };
        if rc != 0 {
            return Err(io::Error::from_raw_os_error(rc));
        }
        // SAFETY: lead + bytes ≤ mapped; memmap2 never maps at null.
        let base = unsafe { NonNull::new_unchecked(raw.add(lead)) };
        Ok(Mapping { base, bytes, file: Some(map) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.file.is_none() {
            // SAFETY: we own the range, and whoever drops the mapping has nothing in it any more.
            let rc = unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
            debug_assert_eq!(rc, 0, "munmap: {}", io::Error::last_os_error());
        }
    }
}

/// The system's page size.
pub(crate) fn page_bytes() -> usize {
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    match PAGE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: sysconf reads a constant of the system.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            let page = usize::try_from(page).expect("every system that has mmap has a page size");
            PAGE.store(page, Ordering::Relaxed);
            page
        }
        page => page,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_aligned_and_writable() {
        let directory = Some(std::env::temp_dir());
        for options in [
            MapOptions { huge_pages: true, ..MapOptions::default() },
            MapOptions { directory, ..MapOptions::default() },
        ] {
            for bytes in [page_bytes(), 3 * page_bytes(), layout::CHUNK, 2 * layout::CHUNK] {
                let mapping = Mapping::new(bytes, true, &options).expect("there is as much memory");
                assert_eq!(mapping.base().addr().get() % layout::CHUNK, 0);
                assert_eq!(mapping.bytes(), bytes + page_bytes());
                // SAFETY: both bytes are in the part that can be touched.
                unsafe {
                    mapping.base().write(1);
                    mapping.base().add(bytes - 1).write(2);
                    assert_eq!(mapping.base().read(), 1);
                }
            }
        }
    }

    #[test]
    fn what_the_system_refuses_is_an_error() {
        assert!(Mapping::new(1 << 47, false, &MapOptions::default()).is_err());
        // Where the system binds at all, it binds to a node that is there, and to no other.
        let bound = |node| Mapping::new(1 << 21, false, &MapOptions { numa_node: Some(node), ..MapOptions::default() });
        match bound(0) {
            Ok(mapping) => drop(mapping),
            Err(error) => assert!(matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)), "{error}"),
        }
        assert!(bound(NODES as u32 - 1).is_err() && bound(NODES as u32).is_err());
        let nowhere = MapOptions { directory: Some("/nonexistent".into()), ..MapOptions::default() };
        assert!(Mapping::new(page_bytes(), false, &nowhere).is_err());
    }
}
