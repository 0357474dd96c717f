package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// CreateRepository is the tool's name for the model.
const CreateRepository = "github.createRepository"

const maxDescription = 350 // characters, GitHub's own limit

// NewRepository holds the arguments of createRepository.
type NewRepository struct {
	Name        string `json:"name" jsonschema:"Of the new repository, without its owner."`
	Description string `json:"description,omitempty" jsonschema:"One line."`
	IsPrivate   bool   `json:"isPrivate,omitempty" jsonschema:"Left out: everybody may read it."`
}

func (h *hub) createRepository() *tool.Tool {
	return define(h, tool.Def[NewRepository, Repository]{
		Name: CreateRepository,
		Description: "Creates one repository in the user's own GitHub account, with a README.md on which commits " +
			"can stand. The user sees it in full and approves it first.",
		SideEffect: true,
		Refine:     inRepositoryNamed,
		Normalize:  normalRepository,
		Targets: func(in NewRepository) []tool.Target {
			return []tool.Target{{Kind: TargetRepository,
				Value: in.Name}}
		},
		Pinned: func(in NewRepository) any {
			in.Description = ""
			return in
		},
		Preview: previewRepository,
		Link:    func(_ tool.Place, made Repository) string { return made.URL },
		Summary: func(in NewRepository) string { return fmt.Sprintf("Created the repository %s.", in.Name) },
		Prepare: h.freeName, Execute: h.makeRepository, Reconcile: h.reconcileRepository,
	})
}

func normalRepository(in NewRepository) (NewRepository, error) {
	if err := named("name", in.Name); err != nil {
		return in, err
	}
	if in.Description == "" {
		return in, nil
	}
	var err error
	in.Description, err = line("description", in.Description)
	return in, err
}

func previewRepository(in NewRepository) tool.Preview {
	p := tool.Preview{Title: "Create a repository on GitHub"}
	p.AddField("Name", in.Name)
	if in.Description != "" {
		p.AddLine("Description", in.Description)
	}
	p.AddField("Begins with", "README.md")
	p.AddField("Who may read it", map[bool]string{true: "Only those whom you let in", false: "Everybody"}[in.IsPrivate])
	return p
}

// free is the handle: the account in which the name was free, and the time.
type free struct {
	Owner string    `json:"owner"`
	At    time.Time `json:"at"`
}

// freeName records that the user has no repository with this name.
func (h *hub) freeName(ctx context.Context, c tool.Call, in NewRepository) (string, error) {
	api, err := h.client(ctx, c)
	if err != nil {
		return "", err
	}
	me, res, err := api.Users.Get(ctx, "")
	if err != nil {
		return "", unlooked(err, "users.get")
	}
	if me.GetLogin() == "" {
		return "", odd()
	}
	there, _, err := api.Repositories.Get(ctx, me.GetLogin(), in.Name)
	switch {
	case err == nil && there.GetName() == "":
		return "", odd()
	case err == nil:
		return "", fault.New(fault.Tool, "provider_refused",
			"A repository with this name exists. Nothing was changed.")
	case read(err).Proof != provider.Missing:
		return "", unlooked(err, "repos.get")
	}
	at := h.now()
	if clock, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		at = clock
	}
	b, err := json.Marshal(free{me.GetLogin(), at.Add(-margin).UTC().Truncate(time.Second)})
	return string(b), err
}

func wasFree(c tool.Call) (f free, ok bool) {
	err := json.Unmarshal([]byte(c.Handle), &f)
	return f, err == nil && f.Owner != ""
}

// makeRepository creates the repository. GitHub refuses a name that is taken; reconcileRepository finds out whether an
// earlier attempt took it.
func (h *hub) makeRepository(ctx context.Context, c tool.Call, in NewRepository) (Repository, error) {
	if _, ok := wasFree(c); !ok {
		return Repository{}, noRecord()
	}
	api, err := h.client(ctx, c)
	if err != nil {
		return Repository{}, err
	}
	wanted := &githubapi.Repository{Name: &in.Name, Private: &in.IsPrivate, AutoInit: new(true)}
	if in.Description != "" {
		wanted.Description = &in.Description
	}
	r, _, err := api.Repositories.Create(ctx, "", wanted)
	switch {
	case err != nil && read(err).Status == http.StatusUnprocessableEntity:
		return Repository{}, tool.Ambiguous(failed(err, "repos.create", "the repository"))
	case err != nil:
		return Repository{}, failed(err, "repos.create", "the repository")
	case r.GetName() == "":
		return Repository{}, unread("the repository")
	}
	return repositoryOf(r), nil
}

// reconcileRepository looks for a repository with the name that was created after the handle.
func (h *hub) reconcileRepository(ctx context.Context, c tool.Call, in NewRepository) (tool.Verdict, Repository, string,
	error) {
	f, ok := wasFree(c)
	if !ok {
		return tool.NotDone, Repository{}, "", nil
	}
	r, err := h.find(ctx, c, f.Owner, in.Name)
	switch {
	case err != nil && read(err).Proof == provider.Missing:
		return tool.NotDone, Repository{}, "", nil
	case err != nil:
		verdict, reason, err := cannotAsk(err, "repos.get", "the repository")
		return verdict, Repository{}, reason, err
	case r.GetName() == "":
		return "", Repository{}, "", odd()
	case r.GetCreatedAt().Before(f.At) || r.GetPrivate() != in.IsPrivate || r.GetDescription() != in.Description:
		return tool.Unknown, Repository{}, "There is a repository of this name, and it is not as it was to be. " +
			"Please look at GitHub.", nil
	}
	return tool.Done, repositoryOf(r), "", nil
}

func (h *hub) find(ctx context.Context, c tool.Call, owner, repo string) (*githubapi.Repository, error) {
	api, err := h.client(ctx, c)
	if err != nil {
		return nil, err
	}
	r, _, err := api.Repositories.Get(ctx, owner, repo)
	return r, err
}
