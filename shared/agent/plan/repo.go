package plan

import (
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Repo is the address of a repository in its normal form: <GITHUB_URL>/owner/name.
type Repo string

// Names that GitHub permits for accounts and repositories. An enterprise account may have an underscore.
var (
	validOwner = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38})$`)
	validRepo  = lazyregexp.New(`^[A-Za-z0-9._-]{1,100}$`)
)

// ParseRepo returns the repository of an address <githubURL>/owner/name or <githubURL>/owner/name.git. It accepts no
// other form: no user, port, query, fragment or other scheme. githubURL is the deployment's. The error is a
// ValidationError of the field repoUrl that does not repeat the address.
func ParseRepo(address, githubURL string) (Repo, error) {
	base := strings.TrimSuffix(githubURL, "/")
	path, ours := strings.CutPrefix(address, base+"/")
	owner, name, two := strings.Cut(path, "/")
	name = strings.TrimSuffix(name, ".git")
	switch {
	case !ours || !two:
		return "", fault.Invalid("repoUrl", "must have the form %s/owner/repository", base)
	case !validOwner.MatchString(owner):
		return "", fault.Invalid("repoUrl", "invalid account name")
	case !validRepo.MatchString(name) || name == "." || name == ".." || strings.HasSuffix(name, ".git"):
		return "", fault.Invalid("repoUrl", "invalid repository name")
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

// MinDeadline is the minimum time from now to a deadline.
const MinDeadline = 60 * time.Second

// ParseDeadline returns the moment of an RFC 3339 text, in UTC. It must be at least 60 s and at most longest after now.
// The error is a ValidationError of the field deadline.
func ParseDeadline(text string, now time.Time, longest time.Duration) (time.Time, error) {
	var at time.Time
	// UnmarshalText accepts a comma, which ISO 8601 permits and RFC 3339 does not.
	if err := at.UnmarshalText([]byte(text)); err != nil || strings.Contains(text, ",") {
		return time.Time{}, fault.Invalid("deadline",
			"must be a time such as 2026-01-31T14:00:00+01:00 (RFC 3339)")
	}
	switch ahead := at.Sub(now); {
	case ahead < MinDeadline:
		return time.Time{}, fault.Invalid("deadline", "the deadline must be at least %s from now", MinDeadline)
	case ahead > longest:
		return time.Time{}, fault.Invalid("deadline", "the deadline must be at most %s from now", longest)
	}
	return at.UTC(), nil
}
