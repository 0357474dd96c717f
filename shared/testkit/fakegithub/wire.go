package fakegithub

import (
	"fmt"
	"strings"
	"time"
)

// The resources in GitHub's form. The description requires some fields for which this server has no data: they are
// addresses that do not exist, or zero counts.

type object = map[string]any

func node(kind string, id any) string { return fmt.Sprintf("%s_%v", kind, id) }

func (s *Server) api(r *repository) string { return s.opts.API + "/repos/" + r.full() }
func (s *Server) web(r *repository) string { return s.opts.Web + "/" + r.full() }

// accountID returns the same ID for the same login.
func accountID(login string) int {
	id := 0
	for _, c := range strings.ToLower(login) {
		id = (id*31 + int(c)) % 1_000_003
	}
	return id + 1
}

func (s *Server) user(login string) object {
	api := s.opts.API + "/users/" + login
	u := object{"login": login, "id": accountID(login), "node_id": node("U", accountID(login)),
		"avatar_url": s.opts.Web + "/" + login + ".png", "gravatar_id": "", "url": api,
		"html_url": s.opts.Web + "/" + login, "type": "User", "site_admin": false}
	for _, list := range []string{"events", "followers", "following", "gists", "organizations", "received_events",
		"repos", "starred", "subscriptions"} {
		u[list+"_url"] = api + "/" + list
	}
	return u
}

// self returns the user of a token.
func (s *Server) self(login string) object {
	u := s.user(login)
	for _, none := range []string{"name", "company", "location", "email", "hireable", "bio"} {
		u[none] = nil
	}
	for _, zero := range []string{"public_repos", "public_gists", "followers", "following", "private_gists",
		"total_private_repos", "owned_private_repos", "disk_usage", "collaborators"} {
		u[zero] = 0
	}
	u["blog"], u["two_factor_authentication"], u["user_view_type"] = "", true, "private"
	u["created_at"], u["updated_at"] = s.now(), s.now()
	return u
}

var repositoryLinks = []string{"archive", "assignees", "branches", "collaborators", "comments", "commits", "compare",
	"contents", "contributors", "deployments", "downloads", "events", "forks", "hooks", "issues", "keys", "labels",
	"languages", "merges", "milestones", "notifications", "pulls", "releases", "stargazers", "statuses", "subscribers",
	"subscription", "tags", "teams"}

func (s *Server) repository(r *repository) object {
	api, web := s.api(r), s.web(r)
	open := 0
	for _, i := range r.issues {
		if i.state == "open" {
			open++
		}
	}
	o := object{"id": r.id, "node_id": node("R", r.id), "name": r.name, "full_name": r.full(),
		"owner": s.user(r.owner), "private": r.private, "html_url": web, "description": r.description, "fork": false,
		"url": api, "blobs_url": api + "/git/blobs{/sha}", "git_commits_url": api + "/git/commits{/sha}",
		"git_refs_url": api + "/git/refs{/sha}", "git_tags_url": api + "/git/tags{/sha}",
		"trees_url": api + "/git/trees{/sha}", "issue_comment_url": api + "/issues/comments{/number}",
		"issue_events_url": api + "/issues/events{/number}", "git_url": "git:" + strings.TrimPrefix(web, "https:"),
		"ssh_url": "git@github.com:" + r.full() + ".git", "clone_url": web + ".git", "svn_url": web, "mirror_url": nil,
		"homepage": nil, "language": nil, "license": nil, "default_branch": r.defaultBranch, "has_issues": true,
		"has_projects": true, "has_wiki": true, "has_pages": false, "has_downloads": true, "has_discussions": false,
		"archived": false, "disabled": false, "open_issues": open, "open_issues_count": open, "created_at": r.created,
		"updated_at": r.created, "pushed_at": r.created, "visibility": visibility(r)}
	for _, link := range repositoryLinks {
		o[link+"_url"] = api + "/" + link
	}
	for _, zero := range []string{"forks", "forks_count", "size", "stargazers_count", "watchers", "watchers_count",
		"network_count", "subscribers_count"} {
		o[zero] = 0
	}
	return o
}

func visibility(r *repository) string {
	if r.private {
		return "private"
	}
	return "public"
}

// about returns the fields that issues and pull requests share.
func (s *Server) about(r *repository, i *issue) object {
	labels := []any{}
	for n, name := range i.labels {
		labels = append(labels, object{"id": accountID(name), "node_id": node("LA", n), "name": name,
			"url": s.api(r) + "/labels/" + name, "description": nil, "color": "ededed", "default": false})
	}
	assignees := []any{}
	for _, login := range i.assignees {
		assignees = append(assignees, s.user(login))
	}
	o := object{"id": i.id, "node_id": node("I", i.id), "number": i.number, "title": i.title, "body": i.body,
		"state": i.state, "user": s.user(i.author), "labels": labels, "assignees": assignees, "assignee": nil,
		"milestone": nil, "locked": false, "comments": len(i.comments), "created_at": i.created,
		"updated_at": i.updated, "closed_at": i.closed, "author_association": "NONE"}
	if len(assignees) > 0 {
		o["assignee"] = assignees[0]
	}
	return o
}

func (s *Server) issue(r *repository, i *issue) object {
	o := s.about(r, i)
	api, web := fmt.Sprintf("%s/issues/%d", s.api(r), i.number), fmt.Sprintf("%s/issues/%d", s.web(r), i.number)
	if i.pull != nil {
		web = fmt.Sprintf("%s/pull/%d", s.web(r), i.number)
		o["pull_request"] = object{"url": fmt.Sprintf("%s/pulls/%d", s.api(r), i.number), "html_url": web,
			"diff_url": web + ".diff", "patch_url": web + ".patch"}
	}
	o["url"], o["html_url"], o["repository_url"] = api, web, s.api(r)
	o["labels_url"], o["comments_url"], o["events_url"] = api+"/labels{/name}", api+"/comments", api+"/events"
	return o
}

func (s *Server) comment(r *repository, i *issue, c *comment) object {
	return object{"id": c.id, "node_id": node("IC", c.id), "body": c.body, "user": s.user(c.author),
		"url":        fmt.Sprintf("%s/issues/comments/%d", s.api(r), c.id),
		"html_url":   fmt.Sprintf("%s/issues/%d#issuecomment-%d", s.web(r), i.number, c.id),
		"issue_url":  fmt.Sprintf("%s/issues/%d", s.api(r), i.number),
		"created_at": c.created, "updated_at": c.created, "author_association": "NONE"}
}

func (s *Server) pull(r *repository, i *issue) object {
	o := s.about(r, i)
	api, web := fmt.Sprintf("%s/pulls/%d", s.api(r), i.number), fmt.Sprintf("%s/pull/%d", s.web(r), i.number)
	of := fmt.Sprintf("%s/issues/%d", s.api(r), i.number)
	o["url"], o["html_url"], o["issue_url"], o["comments_url"] = api, web, of, of+"/comments"
	o["diff_url"], o["patch_url"], o["commits_url"] = web+".diff", web+".patch", api+"/commits"
	o["review_comments_url"], o["review_comment_url"] = api+"/comments", s.api(r)+"/pulls/comments{/number}"
	head, base := s.end(r, i.pull.head), s.end(r, i.pull.base)
	o["statuses_url"] = fmt.Sprintf("%s/statuses/%v", s.api(r), head["sha"])
	o["head"], o["base"], o["draft"], o["merged"], o["mergeable_state"] = head, base, false, false, "clean"
	for _, none := range []string{"merge_commit_sha", "merged_at", "merged_by", "auto_merge", "mergeable"} {
		o[none] = nil
	}
	for _, zero := range []string{"additions", "deletions", "changed_files", "commits", "review_comments"} {
		o[zero] = 0
	}
	o["maintainer_can_modify"] = true
	links := object{"self": api, "html": web, "issue": of, "comments": of + "/comments", "commits": api + "/commits",
		"statuses": o["statuses_url"], "review_comments": api + "/comments", "review_comment": o["review_comment_url"]}
	for name, to := range links {
		links[name] = object{"href": to}
	}
	o["_links"] = links
	return o
}

// end returns the head or the base of a pull request.
func (s *Server) end(r *repository, branch string) object {
	return object{"label": r.owner + ":" + branch, "ref": branch, "sha": r.branches[branch],
		"user": s.user(r.owner), "repo": s.repository(r)}
}

func (s *Server) ref(r *repository, branch string) object {
	sha := r.branches[branch]
	return object{"ref": "refs/heads/" + branch, "node_id": node("REF", branch),
		"url":    s.api(r) + "/git/refs/heads/" + branch,
		"object": object{"type": "commit", "sha": sha, "url": s.api(r) + "/git/commits/" + sha}}
}

func signature(c *commit) object {
	return object{"name": c.author, "email": c.author + "@users.noreply.github.com", "date": c.at.Format(time.RFC3339)}
}

// unsigned is the verification of an unsigned commit.
var unsigned = object{"verified": false, "reason": "unsigned", "signature": nil, "payload": nil, "verified_at": nil}

func (s *Server) parents(r *repository, c *commit) []any {
	all := []any{}
	for _, p := range c.parents {
		all = append(all, object{"sha": p, "url": s.api(r) + "/git/commits/" + p,
			"html_url": s.web(r) + "/commit/" + p})
	}
	return all
}

func (s *Server) commit(r *repository, c *commit) object {
	return object{"sha": c.sha, "node_id": node("C", c.sha), "url": s.api(r) + "/git/commits/" + c.sha,
		"html_url": s.web(r) + "/commit/" + c.sha, "author": signature(c), "committer": signature(c),
		"message": c.message, "tree": object{"sha": c.tree, "url": s.api(r) + "/git/trees/" + c.tree},
		"parents": s.parents(r, c), "verification": unsigned}
}

// listedCommit returns a commit as an element of a list of commits.
func (s *Server) listedCommit(r *repository, c *commit) object {
	api := s.api(r) + "/commits/" + c.sha
	return object{"sha": c.sha, "node_id": node("C", c.sha), "url": api, "html_url": s.web(r) + "/commit/" + c.sha,
		"comments_url": api + "/comments", "author": s.user(c.author), "committer": s.user(c.author),
		"parents": s.parents(r, c), "commit": object{"url": s.api(r) + "/git/commits/" + c.sha,
			"author": signature(c), "committer": signature(c), "message": c.message, "comment_count": 0,
			"tree": object{"sha": c.tree, "url": s.api(r) + "/git/trees/" + c.tree}, "verification": unsigned}}
}

// tree returns a tree: all its files if recursive is true, otherwise its own files and folders.
func (s *Server) tree(r *repository, sha string, files map[string]file, recursive bool) object {
	list, folders := []any{}, map[string]map[string]file{}
	for _, path := range sorted(files) {
		f := files[path]
		if folder, rest, deeper := strings.Cut(path, "/"); deeper && !recursive {
			if folders[folder] == nil {
				folders[folder] = map[string]file{}
			}
			folders[folder][rest] = f
			continue
		}
		if f.mode == modeModule { // a submodule names a commit of another repository
			list = append(list, object{"path": path, "mode": f.mode, "type": "commit", "sha": f.blob})
			continue
		}
		list = append(list, object{"path": path, "mode": f.mode, "type": "blob", "sha": f.blob,
			"size": len(r.blobs[f.blob]), "url": s.api(r) + "/git/blobs/" + f.blob})
	}
	for _, folder := range sorted(folders) {
		sha := r.addTree(folders[folder])
		list = append(list, object{"path": folder, "mode": modeFolder, "type": "tree", "sha": sha,
			"url": s.api(r) + "/git/trees/" + sha})
	}
	return object{"sha": sha, "url": s.api(r) + "/git/trees/" + sha, "tree": list, "truncated": false}
}

// entry returns the fields that files and folder entries share.
func (s *Server) entry(r *repository, path, sha string) object {
	api, web := s.api(r)+"/contents/"+path, s.web(r)+"/blob/"+r.defaultBranch+"/"+path
	git := s.api(r) + "/git/blobs/" + sha
	return object{"name": path[strings.LastIndex(path, "/")+1:], "path": path, "sha": sha, "size": len(r.blobs[sha]),
		"url": api, "html_url": web, "git_url": git, "download_url": web + "?raw=true",
		"_links": object{"self": api, "git": git, "html": web}}
}
