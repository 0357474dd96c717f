package run

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// maxMoments is the maximum number of moments that are stored with a text.
const maxMoments = 16

// MomentsIn returns the moments whose words occur in the text: those in the previews of the run's calls, the times at
// which failed calls can be tried again, and the time at which a daily limit allows more. A client can show these parts
// of the text in the reader's language.
func MomentsIn(tools tool.Set, s *State, text string, now time.Time) (found []tool.Moment) {
	add := func(m tool.Moment) {
		known := slices.ContainsFunc(found, func(k tool.Moment) bool { return k.Text == m.Text })
		if !known && len(found) < maxMoments && m.Text != "" && strings.Contains(text, m.Text) {
			found = append(found, m)
		}
	}
	for _, a := range s.Actions {
		if a.Error != nil {
			if m, ok := tool.RetryMoment(a.Error.Message); ok {
				add(m)
			}
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
			for _, m := range f.Moments {
				add(m)
			}
		}
	}
	for _, m := range MomentsOf(text, now) {
		add(m)
	}
	return found
}

// MomentsOf returns the moments in the message of an error: when it makes sense to try again.
func MomentsOf(message string, now time.Time) (found []tool.Moment) {
	if m, ok := tool.RetryMoment(message); ok {
		found = append(found, m)
	}
	if strings.Contains(message, Tomorrow(now)) {
		found = append(found, tomorrow(now))
	}
	return found
}
