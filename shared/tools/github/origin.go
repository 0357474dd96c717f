package github

import (
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// readingOf describes the result of a reading call. Only GitHub's data about a repository shows whether it is public;
// an issue or a file does not.
func readingOf(in, out any) tool.Reading {
	of := func(owner, repo, what string) tool.Reading {
		name := owner + "/" + repo
		return tool.Reading{Origin: what + " of " + name, Repository: name}
	}
	switch in := in.(type) {
	case IssueToRead:
		return of(in.Owner, in.Repo, fmt.Sprintf("issue %d", in.IssueNumber))
	case PullRequestToRead:
		return of(in.Owner, in.Repo, fmt.Sprintf("pull request %d", in.PRNumber))
	case SomeIssues:
		return of(in.Owner, in.Repo, "the list of issues")
	case SomePullRequests:
		return of(in.Owner, in.Repo, "the list of pull requests")
	case SomeFiles:
		r := of(in.Owner, in.Repo, "the list of files")
		r.File = in.Ref == "" // a call may name a commit of a fork, which is a stranger's
		return r
	case OneFile:
		r := of(in.Owner, in.Repo, "the file "+in.Path)
		r.File = in.Ref == ""
		return r
	case OneCommit:
		return of(in.Owner, in.Repo, "the checks of "+in.Ref)
	case PullRequestPage:
		return of(in.Owner, in.Repo, fmt.Sprintf("the review of pull request %d", in.PRNumber))
	case Where:
		r := of(in.Owner, in.Repo, "the description")
		r.Public = isPublic(out)
		return r
	case Page:
		return tool.Reading{Origin: "the list of your repositories", Public: allPublic(out)}
	}
	return tool.Reading{}
}

// isPublic reports whether a result about a repository shows that it is public.
func isPublic(out any) bool {
	fields, _ := out.(map[string]any)
	private, known := fields["private"].(bool)
	return known && !private
}

func allPublic(out any) bool {
	fields, _ := out.(map[string]any)
	all, _ := fields["repositories"].([]any)
	for _, r := range all {
		if !isPublic(r) {
			return false
		}
	}
	return len(all) > 0
}
