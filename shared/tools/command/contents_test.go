package command

import "testing"

// TestContentsShown: a file that a command prints, and what a later one would write in its place.
func TestContentsShown(t *testing.T) {
	for name, c := range map[string]struct {
		reads, writes string
		cut, same     bool // same: the write is of a file that was shown
	}{
		"by the same name":  {"cat a.txt", "cat > a.txt <<'E'\nx\nE", true, true},
		"by its whole path": {"cat a.txt", "echo x > /home/u/a.txt", true, true},
		"below the folder":  {"cat /home/u/a.txt", "printf x | tee a.txt", true, true},
		"not cut":           {"cat a.txt", "echo x > a.txt", false, true},
		"another folder":    {"cat a.txt", "echo x > /etc/a.txt", true, false},
		"another file":      {"cat a.txt", "echo x > b.txt", true, false},
		"what it computes":  {"cat a.txt", "sort b.txt > a.txt", true, false},
	} {
		shown := shows(Args{Command: c.reads}, Result{Cwd: "/home/u", Truncated: c.cut})
		written := replaces(Args{Command: c.writes})
		same := len(shown) == 1 && len(written) == 1 && shown[0].Is(written[0])
		if same != c.same || len(shown) != 1 || (shown[0].Lost != "") != c.cut {
			t.Errorf("%s: it shows %+v and writes %+v", name, shown, written)
		}
	}
}
