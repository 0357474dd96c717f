package demomodel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/demomodel"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestTakesBack checks words that revoke a waiting proposal, lead to a question about which one, or mean something
// else.
func TestTakesBack(t *testing.T) {
	mail, lunch := "Send a mail to bob@example.com: the demo is at ten", "Lunch with ana@example.com tomorrow at noon"
	titles := map[string]string{mail: "Send an e-mail to one person", lunch: "Create the event “Lunch”"}
	const ask, nothing = "asks", "nothing"
	for _, c := range []struct {
		waits []string
		words string
		want  string
	}{
		{[]string{mail}, "no, cancel", "[1]"},
		{[]string{mail}, "forget it", "[1]"},
		{[]string{mail}, "Don't send it.", "[1]"},
		{[]string{mail}, "dont send it", "[1]"},
		{[]string{mail}, "never mind, thanks", "[1]"},
		{[]string{mail}, "please cancel the mail to Bob", "[1]"},
		{[]string{mail}, "take that back please", "[1]"},
		{[]string{mail}, "sorry, I changed my mind", "[1]"},
		{[]string{mail}, "I don't want that anymore", "[1]"},
		{[]string{mail}, "withdraw the mail", "[1]"},
		{[]string{mail, lunch}, "no, cancel", ask},
		{[]string{mail, lunch}, "forget both", "[1,2]"},
		{[]string{mail, lunch}, "cancel everything", "[1,2]"},
		{[]string{mail, lunch}, "cancel the lunch", "[2]"},
		{[]string{mail, lunch}, "cancel the mail", "[1]"},
		{[]string{mail, lunch}, "don't send the mail", "[1]"},
		{[]string{mail, lunch}, "cancel the second one", "[2]"},
		{[]string{mail}, "cancel the mail to Eve", nothing},
		{[]string{mail}, "cancel my subscription", nothing},
		{[]string{mail}, "wait", nothing},
		{[]string{mail}, "dont send it before monday", nothing},
		{[]string{mail}, "don't forget the agenda", nothing},
		{[]string{mail}, "Send a mail to eve@example.com: no, cancel", nothing},
		{[]string{mail}, "what happens if I cancel?", nothing},
		{[]string{mail}, "thanks", nothing},
		{nil, "no, cancel", nothing},
	} {
		var contents []fakegemini.Content
		say := func(role, text string) {
			contents = append(contents, fakegemini.Content{Role: role, Parts: []fakegemini.Part{{Text: &text}}})
		}
		for _, words := range c.waits {
			say("user", words)
			say("user", "[record k3x7q2m4abcde] The user was asked, and the outcome is not known yet: Waiting for "+
				"your approval: "+titles[words])
		}
		say("user", c.words)
		model := demomodel.Model(func() time.Time { return now })
		turn := model(fakegemini.Request{Contents: contents,
			Tools: append([]fakegemini.Declaration{{Name: toolbox.TakeBackTool}}, offers...)})
		got := nothing
		switch {
		case len(turn.Calls) == 1 && turn.Calls[0].Name == toolbox.TakeBackTool:
			args, err := strictjson.Marshal(turn.Calls[0].Args)
			if err != nil {
				t.Fatal(err)
			}
			got = string(args)
		case len(turn.Text) > 5 && turn.Text[:5] == "Which":
			got = ask
		}
		if c.want != ask && c.want != nothing {
			c.want = fmt.Sprintf(`{"which":%s}`, c.want)
		}
		if got != c.want {
			t.Errorf("%d wait, %q: %s, want %s; it says %q", len(c.waits), c.words, got, c.want, turn.Text)
		}
	}
}
