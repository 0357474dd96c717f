package app_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// alwaysAllowed is a deployment whose user always allows e-mails to bob, and whose calendar has a stranger's words.
func alwaysAllowed(t *testing.T) *proved {
	t.Helper()
	w := deploy(t)
	w.has("ana", invitation)
	asked := w.mailsBob("I am well.")
	a, err := w.Resolve(t.Context(), "ana", asked.Approvals[0], "approve_and_always_allow_recipient")
	if err != nil || a.HTTP != http.StatusOK {
		t.Fatalf("%s, %v; want a.HTTP %v", a.Body, err, http.StatusOK)
	}
	w.deliver()
	return w
}

// mailsBob makes the model do the calls and then e-mail bob with the body.
func (w *proved) mailsBob(body string, calls ...fakegemini.Call) testkit.Answer {
	w.t.Helper()
	calls = append(calls, fakegemini.Call{Name: gmail.Name, Args: testkit.Mail("bob@example.com", "Note", body)})
	next := 0
	w.SetModel(func(fakegemini.Request) fakegemini.Turn {
		if next++; next > len(calls) {
			return fakegemini.Turn{Text: "Done."}
		}
		return fakegemini.Turn{Calls: calls[next-1 : next]}
	})
	return w.call("POST", "/api/agent/run", `{"prompt":"Look around, and tell bob@example.com that I am well."}`)
}

// TestAlwaysAllowWithLinks checks that an always-allowed e-mail waits if mail programs would turn part of it into a
// link. File names and numbers do not count.
func TestAlwaysAllowWithLinks(t *testing.T) {
	w := alwaysAllowed(t)
	for i, body := range []string{"paypa1-verify.com/login", "paypa1-verify.com", "http:host/x", "https:/host/x",
		`http:\\host`, "ht\ttps://host", "evil。com", "http://3232235777/", "[run](/evil/malware/releases/x)",
		"fixes #12", "evil/malware#1", "<a href=/evil/malware>x</a>", "[run][]\n\n[run]: /evil/malware",
		"[run](%2e%2e/%2e%2e/evil/malware)", "fixes **#12**", "<a href='%2e%2e/evil'>x</a>", "bitcoin:1BoatSLRHtKN",
		"[run](any-app:open)"} {
		if a := w.mailsBob(fmt.Sprintf("%d: look at %s", i, body)); a.Status != "awaiting_confirmation" {
			t.Errorf("%s is sent unasked: %s", body, a.Body)
		}
	}
	if a := w.mailsBob("I am well: main.go and README.md, e.g. 1.2.3, at 3.pm"); a.Status != "completed" {
		t.Errorf("what is no link: %s", a.Body)
	}
}

// TestAlwaysAllowWithGitHubReferences checks the same for what GitHub makes a link, a mention or a reference, and for
// links that programs on a device open.
func TestAlwaysAllowWithGitHubReferences(t *testing.T) {
	w := alwaysAllowed(t)
	for i, body := range []string{"closes acme/web#12", "Duplicate of #12", "_@eve_", ".@eve", "-@eve", "x/@eve",
		"eve@a5c3785ed8d6a35868bc169f07e40e889087fd2e", "spotify:track:1", "facetime-audio:x", "news:x"} {
		if a := w.mailsBob(fmt.Sprintf("%d: look at %s", i, body)); a.Status != "awaiting_confirmation" {
			t.Errorf("%s is sent unasked: %s", body, a.Body)
		}
	}
}

// coded writes each character of the invitation in a format.
func coded(format string, as func(rune) any) string {
	var b strings.Builder
	for _, r := range invitation {
		fmt.Fprintf(&b, format, as(r))
	}
	return b.String()
}

// TestAlwaysAllowWithDisguisedWords checks that an e-mail waits if it has a stranger's words in other letters or
// encodings.
func TestAlwaysAllowWithDisguisedWords(t *testing.T) {
	w := alwaysAllowed(t)
	read := fakegemini.Call{Name: calendar.List, Args: day}
	for name, body := range map[string]string{
		"full stops":  strings.ReplaceAll(invitation, "e", "e."),
		"underscores": strings.ReplaceAll(invitation, " ", "_"),
		"cyrillic":    strings.ReplaceAll(invitation, "o", "о"),
		"leet":        strings.NewReplacer("e", "3", "o", "0", "s", "5").Replace(invitation),
		"base64":      base64.StdEncoding.EncodeToString([]byte(invitation)),
		"percent":     url.QueryEscape(invitation),
		"strokes":     strings.NewReplacer("o", "ø", "t", "ŧ", "d", "đ").Replace(invitation),
		"currencies":  strings.NewReplacer("e", "€", "s", "₴", "t", "₮").Replace(invitation),
		"tags":        coded("%s", func(r rune) any { return string(0xe0000 + r) }),
		"selectors":   "😀" + coded("%s", func(r rune) any { return string(0xe0100 + r - 16) }),
		"brackets":    coded("[%02x]", func(r rune) any { return r }),
		"octal":       coded("%o ", func(r rune) any { return r }),
		"characters":  coded("CHAR(%d)||", func(r rune) any { return r }),
		"a dump":      "\n" + hex.Dump([]byte(invitation)),
	} {
		if a := w.mailsBob(body, read); a.Status != "awaiting_confirmation" {
			t.Errorf("%s is sent unasked: %s", name, a.Body)
		}
	}
	if a := w.mailsBob("I am well, and you?", read); a.Status != "completed" {
		t.Errorf("own words: %s", a.Body)
	}
}
