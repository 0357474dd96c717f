package patch

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// MaxDiff limits the length of a diff in bytes. A card shows a longer change in another form.
const MaxDiff = 96 << 10

// Diff is the difference between two versions of a text.
type Diff struct {
	Text    string `json:"text,omitempty"` // unified hunks with three lines of context; empty: too long, or no change
	Added   int    `json:"added"`          // lines
	Removed int    `json:"removed"`        // lines
}

// Between returns the difference between two versions of a text.
func Between(before, after string) (Diff, error) {
	text, err := udiff.ToUnified("a", "b", before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil {
		return Diff{}, err
	}
	_, text, _ = strings.Cut(text, "\n") // the names of the files
	_, text, _ = strings.Cut(text, "\n")
	d := Diff{Text: text}
	for sign := range lines(text) {
		switch sign {
		case '+':
			d.Added++
		case '-':
			d.Removed++
		}
	}
	if len(d.Text) > MaxDiff {
		d.Text = ""
	}
	return d, nil
}

// Sides returns the lines that the diff adds, and those of the earlier version that the diff shows.
func (d Diff) Sides() (added, stood string) {
	var add, was strings.Builder
	for sign, line := range lines(d.Text) {
		switch sign {
		case '+':
			add.WriteString(line)
		case '-', ' ':
			was.WriteString(line)
		}
	}
	return add.String(), was.String()
}

// lines yields the lines of the hunks with their signs, without the headers of the hunks.
func lines(text string) func(yield func(sign byte, line string) bool) {
	return func(yield func(byte, string) bool) {
		for line := range strings.Lines(text) {
			if line[0] == '@' || line[0] == '\\' {
				continue
			}
			if !yield(line[0], line[1:]) {
				return
			}
		}
	}
}

// Changes returns the changes of one file: those of the diff, or if it has no text, those of the replacements and of
// the whole text that is written.
func Changes(d Diff, list []Replacement, whole string) (all []tool.Change) {
	if d.Text != "" {
		added, stood := d.Sides()
		return []tool.Change{{Stood: stood, Added: added}}
	}
	for _, r := range list {
		all = append(all, tool.Change{Stood: r.Old, Added: r.New})
	}
	if whole != "" {
		all = append(all, tool.Change{Added: whole})
	}
	return all
}
