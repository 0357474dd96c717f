package demomodel

import (
	"regexp"
	"strings"
)

const abilities = "I am Countersign's offline demo model, no Gemini: I understand plain requests to send " +
	"mail, such as " +
	"“email ana@example.com that the demo is at ten”, and to make events, such as “schedule a meeting 'standup' " +
	"tomorrow at 10 for 30 minutes with ana@example.com”, or both in one sentence. " +
	"With a GEMINI_API_KEY the real model answers instead."

var (
	greeting  = regexp.MustCompile(`(?i)^\W*(?:hi|hello|hey|good\s+(?:morning|afternoon|evening|day)|greetings)\b`)
	thanks    = regexp.MustCompile(`(?i)\b(?:thanks|thank\s+you|thx|cheers)\b`)
	farewell  = regexp.MustCompile(`(?i)^\W*(?:bye|goodbye|see\s+you)\b`)
	aboutSelf = regexp.MustCompile(
		`(?i)\b(?:help|what\s+can\s+you|who\s+are\s+you|what\s+are\s+you|how\s+do\s+(?:you|i))\b`)
)

// smallTalk answers prompts that request neither mail nor event.
func smallTalk(said string) string {
	switch {
	case len(said) > maxPrompt:
		return "That is longer than I can read, so I did nothing about it. " + abilities
	case aboutSelf.MatchString(said):
		return abilities
	case thanks.MatchString(said):
		return "You are welcome."
	case greeting.MatchString(said):
		return "Hello. " + abilities
	case farewell.MatchString(said):
		return "Goodbye."
	case strings.TrimSpace(said) == "":
		return abilities
	}
	return "You said: “" + excerpt(said) + "”. I did nothing about it. " + abilities
}

// excerpt returns one line of at most 120 characters.
func excerpt(s string) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > 120 {
		return string(r[:119]) + "…"
	}
	return string(r)
}
