//! JSON with comments, as a tree with places.
