//! Edits that keep comments, order, indentation and line endings, and are atomic.
