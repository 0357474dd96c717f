package policy

import "fmt"

// reaches returns a sentence that says how many people the call reaches, and that n of them have what.
func reaches(people []string, n int, what string) string {
	switch {
	case len(people) == 1:
		return fmt.Sprintf("It reaches one person, who has %s.", what)
	case n == len(people):
		return fmt.Sprintf("It reaches %d people, each of whom has %s.", len(people), what)
	case n == 1:
		return fmt.Sprintf("It reaches %d people, one of whom has %s.", len(people), what)
	}
	return fmt.Sprintf("It reaches %d people, %d of whom have %s.", len(people), n, what)
}

// notAllowed returns the reason for people of whom n are not, or no longer, on the user's allowlist.
func notAllowed(people []string, n int) string {
	switch {
	case len(people) == 1:
		return "It reaches one person, whom you have not always allowed for this."
	case n == len(people):
		return fmt.Sprintf("It reaches %d people, none of whom you have always allowed for this.", len(people))
	case n == 1:
		return fmt.Sprintf("It reaches %d people, one of whom you have not always allowed for this.", len(people))
	}
	return fmt.Sprintf("It reaches %d people, %d of whom you have not always allowed for this.", len(people), n)
}
