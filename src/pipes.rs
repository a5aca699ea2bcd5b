//! Larger pipes, so that a large message needs fewer changes between the program that writes it and the one that reads it.

/// Usually, a pipe holds a quarter of this. More would not be faster, and the user's other programs share the limit.
#[cfg(target_os = "linux")]
const SIZE: usize = 256 << 10;

/// Makes a pipe larger. Does nothing to other files, on other systems, and if the limit of the user is reached.
#[cfg(target_os = "linux")]
pub fn enlarge(pipe: impl std::os::fd::AsFd) {
    rustix::pipe::fcntl_setpipe_size(pipe, SIZE).ok();
}

#[cfg(not(target_os = "linux"))]
pub fn enlarge<T>(_pipe: T) {}
