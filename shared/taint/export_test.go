package taint

// Slowly is [Normalize] without what is folded letter by letter.
func Slowly(s string) string { return squeezed(folded(s)) }
