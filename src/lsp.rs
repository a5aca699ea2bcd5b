//! The front for editors.
