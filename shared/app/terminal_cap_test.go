package app_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
)

// TestTerminalListCommandsPerDay uses up a day's commands with lists. The limit is 4, whether the user approves the
// list, edits it, or lets it run without approval.
func TestTerminalListCommandsPerDay(t *testing.T) {
	h := onTerminal(t, nil, "MAX_COMMANDS_PER_DAY=4")
	h.proposesList("echo 1 >> witness", "echo 2 >> witness", "echo 3 >> witness")
	if got := h.approve(h.askOn("Do three.")); got.Status != "completed" || h.witness() != "1\n2\n3\n" {
		t.Fatalf("%q %s; want got.Status “completed”, h.witness() %q", h.witness(), got.Body, "1\n2\n3\n")
	}
	read := h.proposesList("echo 4 >> witness", "echo 5 >> witness")
	got := h.askOn("Do two.")
	const why = "The limit is 4 actions a day, with 1 left; this call adds 2. Ask for fewer, or wait. More is possible "
	if len(got.Approvals) != 0 || len(*read) != 1 || !strings.Contains((*read)[0], why) {
		t.Errorf("a list that is too long: %q %s", *read, got.Body)
	}
	h.proposesList("echo 4 >> witness")
	if got = h.approve(h.askOn("Do one.")); h.witness() != "1\n2\n3\n4\n" {
		t.Errorf("the last command of the day: %q %s", h.witness(), got.Body)
	}
	h.usedUp()
}

// TestTerminalListEditsPerDay adds commands to a list on its card. An edit that exceeds the day's limit is refused, and
// the card stays. A shorter edit gives no commands back.
func TestTerminalListEditsPerDay(t *testing.T) {
	h := onTerminal(t, nil, "MAX_COMMANDS_PER_DAY=4")
	h.proposesList("echo 1 >> witness", "echo 2 >> witness")
	asked := h.askOn("Do two.")
	five := h.resolve(asked.Approvals[0], "approve_with_edits",
		testkit.Commands(slices.Repeat([]string{"echo >> witness"}, 5)...))
	if five.HTTP != http.StatusTooManyRequests || five.Error.Code != "too_many" ||
		!strings.Contains(string(five.Body), "with 2 left; this call adds 3.") ||
		!regexp.MustCompile(`"moments":\[\{"text":"\d+ \w+, 00:00 UTC","at":"[-\d]+T00:00:00Z"\}\]`).Match(five.Body) {
		t.Fatalf("%d %s", five.HTTP, five.Body)
	}
	four := h.resolve(asked.Approvals[0], "approve_with_edits",
		testkit.Commands(slices.Repeat([]string{"echo >> witness"}, 4)...))
	if four.HTTP != http.StatusOK {
		t.Fatalf("%d %s; want four.HTTP %v", four.HTTP, four.Body, http.StatusOK)
	}
	if got := h.run(asked); got.Status != "completed" || h.witness() != "\n\n\n\n" {
		t.Errorf("%q %s; want got.Status “completed”, h.witness() %q", h.witness(), got.Body, "\n\n\n\n")
	}
	h.usedUp()
}

// TestTerminalReadOnlyListsPerDay runs commands that only read until the day's limit.
func TestTerminalReadOnlyListsPerDay(t *testing.T) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only"}, "MAX_COMMANDS_PER_DAY=4")
	h.proposesList("pwd", "whoami", "id")
	if got := h.askOn("Look."); got.Status != "completed" {
		t.Fatalf("%s; want got.Status “completed”", got.Body)
	}
	read := h.proposesList("pwd", "whoami")
	got := h.askOn("Look again.")
	if len(*read) != 1 || !strings.Contains((*read)[0], "with 1 left; this call adds 2.") ||
		strings.Contains((*read)[0], `"exitCode"`) {
		t.Errorf("%q %s", *read, got.Body)
	}
	h.proposesList("pwd")
	if got := h.askOn("Look once."); got.Status != "completed" {
		t.Errorf("%s; want got.Status “completed”", got.Body)
	}
	h.usedUp()
}

// usedUp expects that no further run can start on the terminal, because the day's four commands are used up.
func (h *onHost) usedUp() {
	h.t.Helper()
	a, err := h.as("ana").AskOn(h.t.Context(), h.terminal, "", "Do one more.")
	if err != nil || a.HTTP != http.StatusTooManyRequests ||
		!strings.Contains(string(a.Body), "4 actions were asked for or done") {
		h.t.Errorf("%v %d %s; want a.HTTP %v, a.Body with “4 actions were asked for or done”",
			err, a.HTTP, a.Body, http.StatusTooManyRequests)
	}
}
