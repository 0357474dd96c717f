package github

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// showsOf returns the parts of files and bodies that the result of a reading call shows.
func showsOf(in, out any) []tool.Part {
	switch in := in.(type) {
	case OneFile:
		f := as[File](out)
		if f.SHA == "" || f.Binary {
			return nil
		}
		from := f.From + f.Offset
		return []tool.Part{{Text: fileIn(in.Owner, in.Repo, in.Path), Version: f.SHA, From: from,
			To: from + len(f.Content), Size: f.Size,
			Rest: "Read the rest with " + ReadFile + " and an offset, or change only parts of it with edits."}}
	case IssueToRead:
		i := as[Issue](out)
		return bodies(nil, bodyOf(in.Owner, in.Repo, "issue", in.IssueNumber), ReadIssue, i.UpdatedAt, i.Text)
	case SomeIssues:
		var all []tool.Part
		for _, i := range as[Issues](out).Issues {
			all = bodies(all, bodyOf(in.Owner, in.Repo, "issue", i.Number), ReadIssue, i.UpdatedAt, i.Text)
		}
		return all
	case PullRequestToRead:
		p := as[PullRequest](out)
		return bodies(nil, bodyOf(in.Owner, in.Repo, "pull request", in.PRNumber), ReadPullRequest, p.UpdatedAt, p.Text)
	case SomePullRequests:
		var all []tool.Part
		for _, p := range as[PullRequests](out).PullRequests {
			all = bodies(all, bodyOf(in.Owner, in.Repo, "pull request", p.Number), ReadPullRequest, p.UpdatedAt, p.Text)
		}
		return all
	}
	return nil
}

// as returns a result with its type, or the zero value.
func as[T any](out any) (v T) {
	raw, err := json.Marshal(out)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		var none T
		return none
	}
	return v
}

func fileIn(owner, repo, path string) tool.Text { return tool.Text{In: owner + "/" + repo, Name: path} }

// bodyOf returns the name of the body of an issue or of a pull request.
func bodyOf(owner, repo, kind string, number int) tool.Text {
	return tool.Text{In: owner + "/" + repo, Name: fmt.Sprintf("the body of %s %d", kind, number)}
}

// bodies adds the part of a body that was shown.
func bodies(all []tool.Part, of tool.Text, by, updated string, t Text) []tool.Part {
	end := t.BodyOffset + len(t.Body)
	return append(all, tool.Part{Text: of, Version: updated, From: t.BodyOffset, To: end, Size: max(t.BodySize, end),
		Rest: "Read the rest with " + by + " and a bodyOffset."})
}
