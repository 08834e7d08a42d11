//! The kinds of elements, a file each, and the matcher that divides arguments among them.
