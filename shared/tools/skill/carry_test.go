package skill_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/tools/skill"
)

// conversation returns contents in which the model calls these tools one after the other. A call is written
// "activate_skill x". It is answered with a text, or with an error if it ends in an exclamation mark.
func conversation(t *testing.T, calls ...string) []json.RawMessage {
	t.Helper()
	c, err := model.NewContents([]model.Message{{Role: model.User, Text: "Call activate_skill."}})
	if err != nil {
		t.Fatal(err)
	}
	for i, call := range calls {
		name, arg, _ := strings.Cut(call, " ")
		raw := fmt.Sprintf(`{"role":"model","parts":[{"functionCall":{"id":"c%d","name":%q,"args":{"name":%q}}},`+
			`{"functionCall":{"id":"d%d","name":"look"}}]}`, i, name, strings.TrimSuffix(arg, "!"), i)
		r := model.Response{ID: fmt.Sprint("c", i), Name: name,
			Result: json.RawMessage(fmt.Sprintf(`"This is the text of the skill %s. Do."`, arg))}
		if strings.HasSuffix(arg, "!") {
			r.Result, r.Error = nil, "It failed."
		}
		err := c.AddModel(json.RawMessage(raw))
		if err == nil {
			err = c.AddResponses([]model.Response{r,
				{ID: fmt.Sprint("d", i), Name: "look", Result: json.RawMessage(`{}`)}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c.JSON()
}

func TestCarry(t *testing.T) {
	const most = 1 << 10
	if got := skill.Carry(conversation(t, "look x", "activate_skill z!"), "", most); got != "" {
		t.Errorf("got %q; want empty", got)
	}
	first := skill.Carry(conversation(t, "activate_skill b", "activate_skill a", "look x", "activate_skill z!"), "",
		most)
	if want := "These skills were activated before: b. For the text of one of them call activate_skill again.\n" +
		"This skill was activated last, and still counts: a\nThis is the text of the skill a. Do."; first != want {
		t.Errorf("first is %q; want %v", first, want)
	}
	if got := skill.Carry(conversation(t, "look x"), first, most); got != first {
		t.Errorf("without another activation: %q", got)
	}
	if got := skill.Carry(conversation(t, "activate_skill c", "activate_skill b"), first, most); got !=
		"These skills were activated before: a, c. For the text of one of them call activate_skill again.\n"+
			"This skill was activated last, and still counts: b\nThis is the text of the skill b. Do." {
		t.Errorf("with two more: %q", got)
	}
	alone := skill.Carry(conversation(t, "activate_skill a", "activate_skill a"), "", most)
	if alone != "This skill was activated last, and still counts: a\nThis is the text of the skill a. Do." {
		t.Errorf("alone is %q; want %q",
			alone, "This skill was activated last, and still counts: a\nThis is the text of the skill a. Do.")
	}
	if got := skill.Carry(conversation(t, "activate_skill a"), "", 58); len(got) > 58 ||
		!strings.HasSuffix(got, " […]") {
		t.Errorf("%q", got)
	}
}
