package shell

// Lookers calls f with the name of each program that may run without approval.
func Lookers(f func(name string)) {
	for name := range lookers {
		f(name)
	}
	for name := range searchers {
		f(name)
	}
	for name := range usesOf() {
		f(name)
	}
	for name := range formsOf() {
		f(name)
	}
}
