package app_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// A permission is given before a call, and lets the call run without approval or lets someone request approvals.
type permission struct {
	rules []string // rules of the policy and of tools that then allow a call without approval
	given []string // functions that let the user always allow a call
	back  []string // routes with which the user revokes it
	// try gives the permission and then makes a call that differs from the shown one in one respect, or in none if
	// respect is empty. It returns the text that the user saw, and whether approval is needed.
	try     func(t *testing.T, respect string) (shown string, asked bool)
	shows   []string          // parts of what the user is shown
	asks    bool              // only lets someone request approvals
	differs []string          // respects that are shown
	held    map[string]string // respects that another package's test covers, by that test
}

// permissions are all permissions. TestPermissionTableComplete compares the table with the code.
var permissions = map[string]permission{
	"an always-allowed address": {
		rules: []string{"policy.RuleAllowlisted"}, back: []string{"/api/agent/allowlist/{entryId}"}, try: triesAddress,
		shows: []string{"ana-home@", "Exactly the addresses above", "capitals count before the @", "for 90 days",
			"up to 20 times a day for each address", "from this account alone"},
		differs: []string{"address", "one more address", "capitals", "kind of action", "account", "end", "count",
			"user", "taken back"},
	},
	"an always-allowed command": {
		rules: []string{"policy.RuleCommandAllowed"}, given: []string{"command.always"}, try: triesCommand,
		shows: []string{"touch witness on ", "in the home directory", "for 90 days and up to 20 times a day",
			"by the program file of today", "without variables of earlier commands"},
		differs: []string{"words", "one more word", "directory", "program file", "host", "end", "count", "taken back"},
		held: map[string]string{"variables": "shared/app.TestTerminalAlwaysAllowDirectoryAndProgram",
			"links": "shared/app.TestTerminalAlwaysAllowDirectorySwapped"},
	},
	"an always-allowed change of labels": {
		given: []string{"gmail.ruleModify"}, try: triesLabels,
		shows: []string{"ana-home@", "Exactly this, for 90 days and up to 20 times a day: ",
			"Add the label “Invoices”; Archive (remove from the inbox), for any e-mails of ana-home@"},
		differs: []string{"another label", "one label fewer", "renamed", "account", "end", "count", "user",
			"taken back"},
	},
	"always-allowed notes": {
		given: []string{"memory.asks"}, try: triesNotes,
		shows: []string{"Every such action, for 90 days and up to 20 times a day: ",
			"once the assistant has read text from others"},
		differs: []string{"kind of action", "end", "count", "user", "taken back"},
		held:    map[string]string{"text from strangers": "shared/app.TestMemoryAlwaysAllowed"},
	},
	"a host's rule": {
		rules: []string{"command.RuleReadOnly"}, try: triesHost, shows: []string{"read_only", "/var/log"},
		back:    []string{"/api/agent/hosts/{hostId}", "/api/agent/terminals/{terminalId}"},
		differs: []string{"file", "parent folder", "change", "host"},
		held: map[string]string{"links": "shared/app.TestTerminalLinkOutOfFolders",
			"taken back": "shared/app.TestTerminalHostSettingRevoked"},
	},
	"a plan's grant": {
		rules: []string{"policy.RulePlanGrant"}, try: triesGrant,
		back:    []string{"/api/agent/plans/{sessionId}/grants/{grantId}"},
		shows:   []string{"As ana", "May create 1 issue in acme/web until "},
		differs: []string{"kind of action", "repository", "count", "account", "taken back"},
		held:    map[string]string{"until": "shared/agent/plan.TestGrantFor"},
	},
	"an agent's token": {
		try: triesToken, asks: true, back: []string{"/api/agent/tokens/{tokenId}"}, shows: []string{"My editor"},
		differs: []string{"always allowed"},
		held:    map[string]string{"route, user and end": "shared/app.TestTokensOfAgentsElsewhere"},
	},
	"a linked account": {
		try: triesAccount, asks: true, shows: []string{"ana-home@"},
		back:    []string{"/api/agent/connections/google", "/api/agent/connections/github"},
		differs: []string{"account"},
	},
	"a browser with notifications": {
		back: []string{"/api/agent/push-subscriptions/{subscriptionId}"},
		held: map[string]string{"user": "shared/app.TestDevicesOfUser", "content": "shared/app.TestDevice"},
	},
	"a tool declared to be read-only": {rules: []string{"policy.RuleReadOnly"},
		held: map[string]string{"tool": "shared/app.TestServerApprovalSetting"}},
	"a tool declared to need no approval": {rules: []string{"policy.RuleNotRequired"},
		held: map[string]string{"tool": "shared/app.TestActionWithoutApproval",
			"people": "shared/app.TestActionRecipients"}},
	"an agent that never asks": {rules: []string{"policy.RuleNonInteractive"},
		held: map[string]string{"agent": "shared/app.TestAgentsInFiles",
			"user": "shared/engine/loop.TestAutoApproveOfDisabledUser"}},
}

// deletesOnly are the routes that delete something that permits nothing by itself.
var deletesOnly = []string{"/api/agent/threads/{threadId}", "/api/agent/memory/{noteId}",
	"/api/agent/passkeys/{passkeyId}"}

// TestPermissionAsShown gives each permission, and then makes exactly the call that was shown, and one that differs in
// each respect that was shown.
func TestPermissionAsShown(t *testing.T) {
	realpart.Unraced(t)
	for name, p := range permissions {
		if p.try == nil {
			continue
		}
		for _, respect := range append([]string{""}, p.differs...) {
			t.Run(name+"/"+respect, func(t *testing.T) {
				shown, asked := p.try(t, respect)
				if wanted := respect != "" || p.asks; asked != wanted {
					t.Errorf("asked: %t; the user was shown %s", asked, shown)
				}
				for _, part := range p.shows {
					if !strings.Contains(shown, part) {
						t.Errorf("the user is not shown %q: %s", part, shown)
					}
				}
			})
		}
	}
}

// TestPermissionTableComplete finds each place in the code that lets a call run without approval, that lets a user
// always allow a call, and each route that revokes something. Each must have a row. The tests that rows name must
// exist.
func TestPermissionTableComplete(t *testing.T) {
	page, err := os.ReadFile("../agent/policy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, given, routes := []string{}, []string{}, slices.Clone(deletesOnly)
	for name, p := range permissions {
		if !strings.Contains(string(page), "\n| "+name+" | ") {
			t.Errorf("%s is not on the page for users", name)
		}
		rules, given, routes = append(rules, p.rules...), append(given, p.given...), append(routes, p.back...)
		for respect, test := range p.held {
			dir, test, _ := strings.Cut(test, ".")
			if !hasTest(t, dir, test) {
				t.Errorf("%s, %s: %s has no %s", name, respect, dir, test)
			}
		}
	}
	slices.Sort(rules)
	if found := found(t, allowedBy); !slices.Equal(found, rules) {
		t.Errorf("calls go unasked by %q; the table has %q", found, rules)
	}
	slices.Sort(given)
	if found := found(t, givenBy); !slices.Equal(found, given) {
		t.Errorf("calls can always be allowed by %q; the table has %q", found, given)
	}
	var found []string
	for _, f := range api.Functions {
		for _, r := range f.Routes {
			if r.Method == "DELETE" {
				found = append(found, r.Path)
			}
		}
	}
	slices.Sort(found)
	slices.Sort(routes)
	if !slices.Equal(found, routes) {
		t.Errorf("taken back is %q; the table has %q", found, routes)
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && regexp.MustCompile(`(?m)^func `+name+`\(`).Match(text)
	})
}

// found returns what a function names in the code: it gets each node with the name of its package.
func found(t *testing.T, named func(in string, n ast.Node) string) []string {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir("..", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if name := named(parsed.Name.Name, n); name != "" {
				names[name] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(names, "policy.r.ID") // a tool's own policy, which is found where the tool creates it
	return slices.Sorted(maps.Keys(names))
}

// givenBy returns the name of a function that makes a tool.Always, with its package, or "" for any other node.
func givenBy(in string, n ast.Node) (name string) {
	f, ok := n.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if made, ok := n.(*ast.CompositeLit); ok && identOf(made.Type) == "tool.Always" {
			name = in + "." + f.Name.Name
		}
		return true
	})
	return name
}

// allowedBy returns the rule of a decision that allows, with its package, or "" for any other node.
func allowedBy(in string, n ast.Node) string {
	var values []ast.Expr
	rule := ""
	switch n := n.(type) {
	case *ast.CompositeLit:
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok && slices.Contains([]string{"Mode", "Rule", "ID"}, identOf(kv.Key)) {
				values = append(values, kv.Value)
			}
		}
	case *ast.AssignStmt:
		values = n.Rhs
	}
	allows := false
	for _, v := range values {
		switch name := identOf(v); name {
		case "Allow", "policy.Allow", "tool.RuleAllow":
			allows = allows || name != "Allow" || in == "policy"
		case "":
		default:
			rule = name
		}
	}
	switch {
	case !allows:
		return ""
	case strings.HasPrefix(rule, "policy."):
		return rule
	}
	return in + "." + rule
}

// identOf returns a name as in the code, such as policy.Allow, or "" for any other expression.
func identOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return identOf(e.X) + "." + e.Sel.Name
	}
	return ""
}
