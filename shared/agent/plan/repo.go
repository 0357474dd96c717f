package plan

import (
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Repo is a repository's address in its one form: <GITHUB_URL>/owner/name.
type Repo string

// What GitHub permits in names of accounts and repositories; an account of an enterprise may have an underscore.
var (
	validOwner = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38})$`)
	validRepo  = lazyregexp.New(`^[A-Za-z0-9._-]{1,100}$`)
)

// ParseRepo returns the repository of an address <githubURL>/owner/name or <githubURL>/owner/name.git, and of nothing
// else: no user, port, query, fragment or other scheme. githubURL is the deployment's, without a slash at its end. The
// error is a ValidationError of the field repoUrl that does not repeat the address.
func ParseRepo(address, githubURL string) (Repo, error) {
	base := strings.TrimSuffix(githubURL, "/")
	path, ours := strings.CutPrefix(address, base+"/")
	owner, name, two := strings.Cut(path, "/")
	name = strings.TrimSuffix(name, ".git")
	switch {
	case !ours || !two:
		return "", fault.Invalid("repoUrl", "a repository is named by %s/owner/repository", base)
	case !validOwner.MatchString(owner):
		return "", fault.Invalid("repoUrl", "this is not the name of an account")
	case !validRepo.MatchString(name) || name == "." || name == ".." || strings.HasSuffix(name, ".git"):
		return "", fault.Invalid("repoUrl", "this is not the name of a repository")
	}
	return Repo(base + "/" + owner + "/" + name), nil
}

// Owner returns the account that the repository belongs to.
func (r Repo) Owner() string {
	path := strings.Split(string(r), "/")
	return path[max(0, len(path)-2)]
}

// Name returns the repository's name within its account.
func (r Repo) Name() string { return string(r[strings.LastIndexByte(string(r), '/')+1:]) }

// String returns owner/name.
func (r Repo) String() string { return r.Owner() + "/" + r.Name() }

// MinDeadline is how far ahead a deadline is at least.
const MinDeadline = 60 * time.Second

// ParseDeadline returns the moment of an RFC 3339 text, in UTC: at least 60 s and at most longest after now. The error
// is a ValidationError of the field deadline.
func ParseDeadline(text string, now time.Time, longest time.Duration) (time.Time, error) {
	var at time.Time
	if err := at.UnmarshalText([]byte(text)); err != nil || strings.Contains(text, ",") { // a comma is ISO 8601
		return time.Time{}, fault.Invalid("deadline",
			"a moment such as 2026-01-31T14:00:00+01:00 (RFC 3339) is needed")
	}
	switch ahead := at.Sub(now); {
	case ahead < MinDeadline:
		return time.Time{}, fault.Invalid("deadline", "the deadline is at least %s ahead", MinDeadline)
	case ahead > longest:
		return time.Time{}, fault.Invalid("deadline", "the deadline is at most %s ahead", longest)
	}
	return at.UTC(), nil
}
