package run

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// maxMoments is the maximum number of moments that are stored with a text.
const maxMoments = 16

// MomentsIn returns the moments in the previews of the run's calls whose words occur in the text. A client can show
// these parts of the text in the reader's language.
func MomentsIn(tools tool.Set, s *State, text string) (found []tool.Moment) {
	for _, a := range s.Actions {
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
				known := slices.ContainsFunc(found, func(k tool.Moment) bool { return k.Text == m.Text })
				if !known && len(found) < maxMoments && m.Text != "" && strings.Contains(text, m.Text) {
					found = append(found, m)
				}
			}
		}
	}
	return found
}
