//! Calls that only the C library offers: forking, catching a signal, and returning memory to the system. Each function checks what makes it
//! safe. On other systems than Linux, these functions do nothing or do not exist.

#[cfg(unix)]
use std::time::Duration;

/// A front has joined its engine by then.
#[cfg(unix)]
const AFTER_START: Duration = Duration::from_secs(1);

/// Limits the number of heaps that threads share. By default, each thread has its own, which grows by small steps and keeps
/// what is free. With a single heap, threads that run at the same time wait for each other. Called first, by `main`.
pub fn limit_heaps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    gnu::limit_heaps(std::thread::available_parallelism().map_or(1, usize::from));
}

/// With a limit on the size of files, a write over it ends a process by a signal. Afterwards it is an error like that of a
/// full disk. Called by `main`, before anything is written.
pub fn survive_full_files() {
    #[cfg(unix)]
    unix::catch_file_size_signal();
}

/// Gives memory back that only the start needed: free memory of the heap, and the parts of the program that ran. What is
/// used again is mapped again, from the cache of the kernel.
pub fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    gnu::trim_heap();
    #[cfg(target_os = "linux")]
    linux::unmap_program();
}

/// The same, once a process has started.
#[cfg(unix)]
pub async fn give_memory_back_after_start() {
    tokio::time::sleep(AFTER_START).await;
    give_memory_back();
}

#[cfg(target_os = "linux")]
pub use linux::fork;

#[cfg(unix)]
#[expect(unsafe_code, reason = "the standard library cannot catch signals, and its replacements need a runtime")]
mod unix {
    /// A program that we start does not inherit a signal that is caught, unlike one that is ignored.
    pub fn catch_file_size_signal() {
        extern "C" fn nothing(_signal: libc::c_int) {}
        // SAFETY: the handler does nothing, so it may run at any time.
        unsafe { libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t) };
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the standard library has no settings of the heap")]
mod gnu {
    /// As many threads as there are processors run at the same time, and one waits for the disk.
    pub fn limit_heaps(processors: usize) {
        let most = i32::try_from(processors + 1).unwrap_or(i32::MAX);
        // SAFETY: it sets a number, which the allocator reads under its own lock.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, most) };
    }

    pub fn trim_heap() {
        // SAFETY: it takes the locks of the allocator, and releases only memory that is free.
        unsafe { libc::malloc_trim(0) };
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library has neither `fork` nor `madvise`")]
mod linux {
    use std::{fs, io, ptr};

    use rustix::process::Pid;

    /// Continues in two processes. Returns the pid of the new one, which itself gets `None`. Fails if there are several
    /// threads: the new process would have only this one, and perhaps the locks of the others.
    pub fn fork() -> io::Result<Option<Pid>> {
        if fs::read_dir("/proc/self/task")?.count() != 1 {
            return Err(io::Error::other("a process with several threads cannot fork"));
        }
        // SAFETY: there is only this thread, so the new process has everything in the state in which this thread has it.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            pid => Ok(Pid::from_raw(pid)),
        }
    }

    /// Unmaps the pages of the program that nothing has changed. The kernel reads them again from the program where they are
    /// used.
    pub fn unmap_program() {
        let (Ok(program), Ok(maps)) = (fs::read_link("/proc/self/exe"), fs::read_to_string("/proc/self/smaps")) else {
            return;
        };
        for (start, length) in program.to_str().map(|program| unchanged(&maps, program)).unwrap_or_default() {
            // SAFETY: these pages hold what the file of the program holds: nothing can write to them, and the dynamic linker,
            // which could before the start, has not: it would have left anonymous pages, in memory or swapped out. The
            // program stays mapped, so nothing else is ever at their place.
            unsafe { libc::madvise(ptr::without_provenance_mut(start), length, libc::MADV_DONTNEED) };
        }
    }

    /// The mappings of a program that cannot be written to and have no changed page: start and length. The kernel has to
    /// state all three: emulators print a size of 0 for everything that they do not know.
    fn unchanged(maps: &str, program: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut mapping = None;
        let (mut is_resident, mut is_unchanged) = (false, false);
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (Some(first), Some(second)) = (words.next(), words.next()) else { continue };
            if let Some((start, end)) = range(first) {
                let is_ours = second.starts_with("r-") && line.ends_with(&format!(" {program}"));
                mapping = is_ours.then_some((start, end.saturating_sub(start)));
                (is_resident, is_unchanged) = (false, false);
            }
            match first {
                "Rss:" => is_resident = second != "0",
                "Anonymous:" => is_unchanged = second == "0",
                "Swap:" if second == "0" && is_resident && is_unchanged => found.extend(mapping.take()),
                _ => {}
            }
        }
        found
    }

    /// `55d0-55e0` in the first line of a mapping.
    fn range(word: &str) -> Option<(usize, usize)> {
        let (start, end) = word.split_once('-')?;
        Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_unchanged_parts_of_the_program_are_unmapped() {
            let mapping = |first: &str, [rss, anonymous, swap]: [u32; 3]| {
                format!("{first}\nSize: 8 kB\nRss: {rss} kB\nAnonymous: {anonymous} kB\nSwap: {swap} kB\nVmFlags: rd\n")
            };
            let maps = [
                mapping("1000-3000 r--p 00000000 fe:00 7    /bin/it", [8, 0, 0]),
                mapping("3000-4000 r-xp 00002000 fe:00 7    /bin/it", [4, 0, 0]),
                mapping("4000-5000 r--p 00003000 fe:00 7    /bin/it", [4, 4, 0]),
                mapping("5000-6000 rw-p 00004000 fe:00 7    /bin/it", [4, 0, 0]),
                mapping("6000-7000 r-xp 00000000 fe:00 8    /lib/bin/it.so", [4, 0, 0]),
                mapping("7000-8000 r-xp 00000000 fe:00 9    /other/bin/it", [4, 0, 0]),
                mapping("8000-9000 r-xp 00000000 00:00 0    [vdso]", [4, 0, 0]),
                // Swapped out, unknown, and without what older kernels do not state.
                mapping("9000-a000 r--p 00005000 fe:00 7    /bin/it", [4, 0, 4]),
                mapping("a000-b000 r--p 00006000 fe:00 7    /bin/it", [0, 0, 0]),
                "b000-c000 r--p 00007000 fe:00 7    /bin/it\nRss: 4 kB\nAnonymous: 0 kB\n".to_owned(),
            ];
            assert_eq!(unchanged(&maps.concat(), "/bin/it"), [(0x1000, 0x2000), (0x3000, 0x1000)]);
        }

        #[test]
        fn a_program_runs_on_after_its_pages_were_unmapped() {
            let text = "the same as before".to_owned();
            super::super::give_memory_back();
            assert_eq!(text, "the same as before");
            let own = fs::read_to_string("/proc/self/smaps").unwrap();
            let program = fs::read_link("/proc/self/exe").unwrap();
            assert!(!unchanged(&own, program.to_str().unwrap()).is_empty(), "this program has such pages");
        }

        #[test]
        fn a_process_with_several_threads_does_not_fork() {
            // The test runs in a second thread.
            assert!(fork().is_err());
        }
    }
}
