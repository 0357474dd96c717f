// Package github provides the tools that read GitHub and act there, in the account of the run's owner (seed 004,
// github-service). Their results are text from strangers.
//
// An effect takes place once, even if its answer is lost. An issue, comment or pull request that these tools create
// carries a mark: an invisible HTML comment with the action's ID. It is found again by the mark in GitHub's lists, and
// never by GitHub's search, whose index lags. Lists may lag too. A call without a trace is repeated only if GitHub
// itself refuses a duplicate, as it does for pull requests, repositories and the commits of a branch. After an
// inconclusive answer, neither a refusal nor a search proves that nothing was changed, so a person must review the
// call. A change is verified by reading the object before and after it.
package github

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The kinds of targets.
const (
	// TargetRepository is owner/name, or only the name of a new repository of the user.
	TargetRepository                 = tool.TargetRepository
	TargetAccount    tool.TargetKind = "account" // a login
)

// Accounts are the GitHub accounts that users have linked.
type Accounts = provider.Accounts

// Options configures the tools. The zero value works with github.com.
type Options struct {
	Endpoint string           // URL of another GitHub's API, with its trailing slash; empty means GitHub's
	Timeout  time.Duration    // limit of one call; 0 means 20 s
	Pause    time.Duration    // the wait before the first repeated check; 0 means 30 s
	Now      func() time.Time // the clock; nil means time.Now
	// Strangers is the client for logs at addresses that GitHub returns; nil means netguard.Strangers of a deployment.
	Strangers *http.Client
	// Containers provides the files of containers for commits; nil if runs have no containers.
	Containers Containers
}

// New returns the tools for GitHub.
func New(accounts Accounts, o Options) tool.Set {
	h := newHub(accounts, o)
	return tool.NewSet(h.listRepositories(), h.retrieveRepository(), h.readIssue(), h.listIssues(), h.readPullRequest(),
		h.listPullRequests(), h.listFiles(), h.readFile(), h.createIssue(), h.createComment(), h.createPullRequest(),
		h.createRepository(), h.listChecks(), h.waitForChecks(), h.listReviewComments(), h.replyToReviewComment(),
		h.updateIssue(), h.closeIssue(), h.updatePullRequest(), h.closePullRequest(), h.commitFiles())
}

// hub executes the calls of the tools.
type hub struct {
	accounts Accounts
	endpoint string
	timeout  time.Duration
	pause    time.Duration
	now      func() time.Time

	strangers  *http.Client
	containers Containers // nil: none
}

func newHub(accounts Accounts, o Options) *hub {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Strangers == nil {
		o.Strangers = netguard.Strangers(true)
	}
	return &hub{accounts: accounts, endpoint: o.Endpoint, timeout: cmp.Or(o.Timeout, provider.Timeout),
		pause: cmp.Or(o.Pause, firstPause), now: o.Now, strangers: o.Strangers, containers: o.Containers}
}

// define returns a tool that acts in the user's linked account. GitHub grants an app what it may do, so there are no
// scopes.
func define[In, Out any](h *hub, d tool.Def[In, Out]) *tool.Tool {
	d.Reads = func(in tool.Scope) []string { return h.accounts.Reads(in.UID) }
	d.Place = func(ctx context.Context, in tool.Scope) (tool.Place, error) {
		return h.accounts.Place(ctx, in.UID, nil)
	}
	return tool.Define(d)
}

// client returns a GitHub client that acts as the call's user, in the account for which the call was approved. It does
// not track the rate limit, because it is used for one call only.
func (h *hub) client(ctx context.Context, c tool.Call) (*githubapi.Client, error) {
	once, err := provider.Client(ctx, h.accounts, c, name, provider.MaxAnswer)
	if err != nil {
		return nil, err
	}
	opts := []githubapi.ClientOptionsFunc{githubapi.WithHTTPClient(once), githubapi.WithDisableRateLimitCheck(),
		githubapi.WithTimeout(h.timeout)}
	if h.endpoint != "" {
		opts = append(opts, githubapi.WithURLs(&h.endpoint, &h.endpoint))
	}
	api, err := githubapi.NewClient(opts...)
	if err != nil {
		return nil, fault.New(fault.Tool, fault.CodeInternal, "The request to GitHub could not be "+
			"prepared.").Because(err)
	}
	return api, nil
}

// The mark in objects that an action has created.
const (
	markBegin = "<!-- countersign:"
	markEnd   = " -->"
)

func mark(action string) string { return markBegin + action + markEnd }

// marked returns a body with the action's mark at its end.
func marked(body, action string) string {
	if body == "" {
		return mark(action)
	}
	return body + "\n\n" + mark(action)
}

// withoutMark returns a body as its author wrote it.
func withoutMark(body string) string {
	before, _, _ := strings.Cut(body, markBegin)
	return strings.TrimRight(before, "\n")
}
