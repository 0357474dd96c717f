package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

const shopSite, otherSite, ownHost = "https://shop.example", "https://other.example", "agent.example"

// withAShop is a deployment for two sites: a shop, whose agents have its actions, and another site.
func withAShop(t *testing.T, e *endpoint) *proved {
	t.Helper()
	agents, actions := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(agents, "shop.agent.yaml", "name: shop\npage: true\norigins: ["+shopSite+"]\n"+
		"instruction: You serve the shop.\ntools: [action_rate, action_look]\n")
	write(agents, "desk.agent.yaml", "name: desk\ninstruction: You work for the shop.\ntools: [action_rate]\n")
	plugin := "name: shop\noffered: named\nactions:\n"
	for name, more := range map[string]string{"rate": "", "look": "  method: GET\nsideEffect: false\n"} {
		plugin += "  - {name: " + name + ", action: ./" + name + ".jay-action}\n"
		text := strings.NewReplacer("NAME", name, "URL", e.URL+"/"+name).Replace(declared) + more
		write(actions, name+".jay-action", text)
	}
	write(actions, "plugin.yaml", plugin)
	w := deploy(t, "AGENTS="+agents, "ACTIONS="+actions, "ACTION_KEY=0123456789abcdef0123456789abcdef",
		"ALLOWED_ORIGINS="+shopSite+","+otherSite+",https://"+ownHost)
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 {
			return fakegemini.Turn{Text: "That is what came of it."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: r.User(), Args: map[string]any{"id": "mug"}}}}
	})
	return w
}

// TestOriginsOfAgent checks that an agent with origins answers only pages of these origins, for messages and results,
// and that its actions can be called only from there.
func TestOriginsOfAgent(t *testing.T) {
	e := newEndpoint(t)
	w := withAShop(t, e)
	const refused = `The agent \"shop\" is not available on this site.`
	w.wants("a message", w.says("shop", "action_look", nil, "Origin", otherSite), http.StatusForbidden, refused)
	asked := w.says("shop", "action_rate", nil, "Origin", shopSite)
	if len(asked.Calls) != 1 || asked.Calls[0].Approval == nil {
		t.Fatalf("the shop's page is answered %d %s", asked.HTTP, asked.Body)
	}
	clicks := w.says("shop", "click-x", nil, "Origin", shopSite)
	w.wants("results", w.answers(clicks, "Origin", otherSite), http.StatusForbidden, refused)
	w.wants("what comes of an action", w.answers(asked, "Origin", otherSite), http.StatusForbidden, refused)
	w.wants("a history", w.says("shop", "and now", clicks.History, "Origin", otherSite), http.StatusForbidden, refused)
	w.wants("the page's own agent", w.says("", "action_look", nil, "Origin", otherSite), http.StatusOK, "came of it")
	for _, name := range []string{"rate", "look"} {
		a, _ := w.act(name, `{"id":"mug"}`, "Origin", otherSite)
		w.wants(name, a, http.StatusForbidden, "This action is not for pages of this site.")
	}
	if got := e.requests(); len(got) > 0 {
		t.Fatalf("from another site the shop was asked %v", got)
	}

	w.wants("results there", w.answers(clicks, "Origin", shopSite), http.StatusOK, "came of it")
	for _, origin := range []string{shopSite, ""} { // a page of the shop, and a program
		a, _ := w.act("look", `{"id":"mug"}`, "Origin", origin)
		w.wants("its action", a, http.StatusOK, `"items":1`)
		w.wants("a message", w.says("shop", "action_look", nil, "Origin", origin), http.StatusOK, "came of it")
	}
	if got := e.requests(); len(got) != 4 {
		t.Errorf("the shop was asked %v", got)
	}
}

// TestOriginsOfActions uses the console's agent, which has the shop's action. For a page of another site, its model
// does not get the action and cannot call it by name.
func TestOriginsOfActions(t *testing.T) {
	w := withAShop(t, newEndpoint(t))
	for where, c := range map[string]struct {
		header []string
		waits  bool
	}{
		"another site":                    {[]string{"Origin", otherSite}, false},
		"a page that is not what it says": {[]string{"Origin", "https://" + ownHost}, false},
		"the shop":                        {[]string{"Origin", shopSite}, true},
		"the console":                     {[]string{"Origin", "https://" + ownHost, "Host", ownHost}, true},
		"a program":                       {nil, true},
	} {
		t.Run(where, func(t *testing.T) {
			for path, body := range map[string]string{
				"/api/agent/run": `{"agent":"desk","prompt":"action_rate"}`,
				"/api/agent/ui": `{"id":"c-` + strings.ReplaceAll(where, " ", "-") + `","agent":"desk","trigger":"submit-message",` +
					`"messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"action_rate"}]}]}`,
			} {
				a, err := w.Call(t.Context(), "ana", "POST", path, body, c.header...)
				if err != nil {
					t.Fatal(err)
				}
				asks := strings.Contains(string(a.Body), "mug") && strings.Contains(string(a.Body), "approv")
				if a.HTTP != http.StatusOK || asks != c.waits {
					t.Errorf("%s: %d %s; want a.HTTP %v, asks %v", path, a.HTTP, a.Body, http.StatusOK, c.waits)
				}
			}
		})
	}
}
