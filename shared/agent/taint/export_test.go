package taint

// Slowly is [Normalize] without the shortcut that folds letters one by one.
func Slowly(s string) string { return squeezed(folded(s)) }

// Disguised returns the form in which disguised texts are compared.
func Disguised(s string) string { return disguised(s, Normalize(s), nil) }
