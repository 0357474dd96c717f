package github

import (
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/internal/patch"
)

func previewCommit(in NewCommit) tool.Preview {
	c := newCard("Commit to GitHub", in.Owner, in.Repo)
	c.AddField("Branch", in.Branch)
	if in.From != "" {
		c.AddField("New, from the branch", in.From)
	}
	c.AddText("Message", in.Message)
	if in.ContainerID != "" {
		c.AddField("Container", in.ContainerID)
	}
	for _, f := range in.Files {
		note := patch.Notable(f.Path, f.Content, false)
		if f.Base == nil {
			c.asWritten(f)
		} else {
			c.compared(f, *f.Base)
			note = f.Base.Note
		}
		if note != "" && !f.Delete {
			c.Warn("Look closely at %s: %s.", f.Path, note)
		}
	}
	return c.Preview
}

// asWritten shows a file that was not compared with the one on the branch.
func (c *card) asWritten(f FileChange) {
	switch {
	case f.Delete:
		c.AddField("Delete "+f.Path, "Deletes the file")
	case f.SHA256 != "":
		addSource(&c.Preview, f)
		c.Warn("Files from the container are not shown here: exactly the files with these sums are committed.")
	case len(f.Edits) > 0:
		c.replacements(f)
	default:
		c.AddText("Write "+f.Path, f.Content)
	}
}

// replacements shows the edits of a file one by one.
func (c *card) replacements(f FileChange) {
	for i, e := range f.Edits {
		c.AddText(fmt.Sprintf("Replace in %s, %d", f.Path, i+1), e.Old)
		c.AddText(fmt.Sprintf("With, %d", i+1), e.New)
	}
}

// compared shows the changes to a file.
func (c *card) compared(f FileChange, b Base) {
	if f.SHA256 != "" {
		addSource(&c.Preview, f)
	}
	size := fmt.Sprintf("+%d −%d", b.Diff.Added, b.Diff.Removed)
	label := fmt.Sprintf("Change %s, %s", f.Path, size)
	switch {
	case b.Moved != "":
		label = fmt.Sprintf("Rename %s to %s, %s", b.Moved, f.Path, size)
	case b.SHA == "":
		label = fmt.Sprintf("New file %s, +%d", f.Path, b.Diff.Added)
	}
	switch {
	case f.Delete && b.Binary:
		c.AddField("Delete "+f.Path, "Deletes the file, which is not a text")
	case f.Delete:
		c.AddField("Delete "+f.Path, fmt.Sprintf("Deletes the file with its %d lines", b.Diff.Removed))
	case b.Diff.Text != "":
		c.AddDiff(label, b.Diff.Text, b.Folded)
	case b.Binary, b.Unread:
		c.AddField("Replace "+f.Path, "The file on the branch is not a text, or too long to compare")
		c.asWritten(f)
	case b.SHA != "" && b.Diff.Added+b.Diff.Removed == 0:
		c.AddField(label, "No line changes")
	case b.SHA == "" && f.SHA256 == "":
		c.AddText(label, f.Content)
		c.Fields[len(c.Fields)-1].Folded = b.Folded
	default:
		c.AddField(label, "The difference is too long to show")
		c.asWritten(f)
	}
}
