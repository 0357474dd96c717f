package run

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// maxMoments is the maximum number of moments that are stored with a text.
const maxMoments = 16

// MomentsIn returns the moments whose words occur in the text: those in the previews of the run's calls, the times in
// the errors of failed calls, and the time at which a daily limit allows more. A client can show these parts of the
// text in the reader's language.
func MomentsIn(tools tool.Set, s *State, text string, now time.Time) (found []tool.Moment) {
	for _, a := range s.Actions {
		if a.Error != nil {
			found = addMoments(found, text, MomentsOf(a.Error.Message, now))
		}
		t := tools[a.Tool]
		if t == nil {
			continue
		}
		p, err := t.Preview(a.Args)
		if err != nil {
			continue // the text has only the call's name
		}
		for _, f := range p.Fields {
			found = addMoments(found, text, f.Moments)
		}
	}
	return addMoments(found, text, tomorrowMoments(text, now))
}

// addMoments adds those of the moments whose words occur in the text, each once.
func addMoments(found []tool.Moment, text string, more []tool.Moment) []tool.Moment {
	for _, m := range more {
		known := slices.ContainsFunc(found, func(k tool.Moment) bool { return k.Text == m.Text })
		if !known && len(found) < maxMoments && m.Text != "" && strings.Contains(text, m.Text) {
			found = append(found, m)
		}
	}
	return found
}

var instants = lazyregexp.New(
	`(?:^|[\s("“])(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))(?:[\s.,;:)"”]|$)`)

// MomentsOf returns the moments in the message of an error: when it makes sense to try again, and instants in RFC 3339.
// near is a time within half a year of them, such as the time of the error.
func MomentsOf(message string, near time.Time) []tool.Moment {
	found := addMoments(nil, message, tool.RetryMoments(message))
	found = addMoments(found, message, tomorrowMoments(message, near))
	for _, stamp := range instants.FindAllStringSubmatch(message, maxMoments) {
		found = addMoments(found, message, tool.StampMoment(stamp[1]))
	}
	return found
}
