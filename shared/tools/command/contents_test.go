package command_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-run/countersign/shared/tools/command"
)

// TestContentsShown compares the file that a command prints with the file that a later command writes.
func TestContentsShown(t *testing.T) {
	run := command.New(command.Options{})[command.Run]
	for name, c := range map[string]struct {
		reads, writes string
		cut, same     bool // same: the written file is the shown one
	}{
		"by the same name":  {"cat a.txt", "cat > a.txt <<'E'\nx\nE", true, true},
		"by its whole path": {"cat a.txt", "echo x > /home/u/a.txt", true, true},
		"below the folder":  {"cat /home/u/a.txt", "printf x | tee a.txt", true, true},
		"not cut":           {"cat a.txt", "echo x > a.txt", false, true},
		"another folder":    {"cat a.txt", "echo x > /etc/a.txt", true, false},
		"another file":      {"cat a.txt", "echo x > b.txt", true, false},
		"what it computes":  {"cat a.txt", "sort b.txt > a.txt", true, false},
	} {
		shown := run.Shows(marshal(t, command.Args{Command: c.reads}),
			marshal(t, command.Result{Cwd: "/home/u", Truncated: c.cut}))
		written, err := run.Replaces(marshal(t, command.Args{Command: c.writes}))
		if err != nil {
			t.Fatal(err)
		}
		same := len(shown) == 1 && len(written) == 1 && shown[0].Is(written[0])
		if same != c.same || len(shown) != 1 || (shown[0].Lost != "") != c.cut {
			t.Errorf("%s: it shows %+v and writes %+v", name, shown, written)
		}
	}
}

func marshal(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
