package policy

import "fmt"

// reaches returns a sentence that states that n of the people have what, such as an invalid address.
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

// notAllowed returns the reason for a call with n recipients that the user's allowlist does not cover.
func notAllowed(people []string, n int) string {
	switch {
	case len(people) == 1:
		return "It reaches one person, who is not always allowed for this."
	case n == len(people):
		return fmt.Sprintf("It reaches %d people, none of whom is always allowed for this.", len(people))
	case n == 1:
		return fmt.Sprintf("It reaches %d people, one of whom is not always allowed for this.", len(people))
	}
	return fmt.Sprintf("It reaches %d people, %d of whom are not always allowed for this.", len(people), n)
}
