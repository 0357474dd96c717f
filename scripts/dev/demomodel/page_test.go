package demomodel_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/demomodel"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"maps"
	"slices"
)

// The tools of a shop's page as a widget declares them, and the shop's actions.
const (
	keyed      = `{"type":"object","properties":{"key":{"type":"string","enum":["mug-blue","mug-red"]}},"required":["key"]}`
	keyedValue = `{"type":"object","properties":{"key":{"type":"string"},"value":{"type":"string"}},"required":["key","value"]}`
	value      = `{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]}`
	nothing    = `{"type":"object","properties":{}}`
	generic    = `{"type":"object","properties":{"coordinate":{"type":"array","items":{"type":"string"}},"event":{"type":"string"},"value":{"type":"string"}},"required":["coordinate"]}`
	mood       = `{"type":"object","properties":{"value":{"type":"string","enum":["great","fine","tired","sad"]}},"required":["value"]}`
	search     = `{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}`
	rating     = `{"type":"object","properties":{"productId":{"type":"string"},"stars":{"type":"integer"},"comment":{"type":"string"}},"required":["productId","stars"]}`
)

var shopTools = map[string]string{
	"fill-search": value, "fill-quantity": keyedValue, "fill-cart-quantity": keyedValue, "click-add-to-cart": keyed,
	"click-remove": keyed,
	"select-mood":  mood, "fill-mood-note": value, "click-submit-mood": nothing, "click-checkout": nothing,
	"action_searchProducts": search, "action_submitRating": rating, "gmail_send": nothing,
	"calendar_event_create": nothing,
}

const shopState = `{"viewState":{"search":"","cart-count":"2","cart-total":"€24.00",
	"products":[{"key":"mug-blue","name":"Blue Mug","price":"€12.00"},{"key":"mug-red","name":"Red Mug","price":"€12.00"}],
	"cart":[{"key":"mug-blue","name":"Blue Mug","quantity":"2","price":"€24.00"}],"mood-answer":"You feel great. Keep it up!"},
	"interactions":[{"coordinate":["products","mug-blue","add-to-cart"]},{"coordinate":["products","mug-red","add-to-cart"]},{"coordinate":["products","mug-red","quantity"]},{"coordinate":["search"]}],
	"customEvents":[]}`

const twoMugs = `{"output":{"products":[{"id":"mug-blue","name":"Blue Mug","price":"€12.00"},{"id":"mug-travel","name":"Steel Travel Mug","price":"€24.00"}],"total":2}}`

// talk is a conversation about a page.
type talk struct {
	t        *testing.T
	server   *fakegemini.Server
	url      string
	tools    map[string]string
	system   string
	mode     string
	allowed  []string
	contents []json.RawMessage

	described func(tool string) string
}

func newTalk(t *testing.T, tools map[string]string, state string) *talk {
	t.Helper()
	model := fakegemini.New(func(r fakegemini.Request) fakegemini.Turn {
		turn := demomodel.Model(func() time.Time { return now })(r)
		turn.Delay = 0
		return turn
	})
	s := httptest.NewServer(model)
	t.Cleanup(s.Close)
	return &talk{t: t, server: model, url: s.URL, tools: tools, mode: "AUTO",
		described: func(tool string) string { return tool },
		system:    "You help with this page.\n{not json}\n## Current page state\n" + state + "\nUse the tools."}
}

// add appends a content and returns the model's answer: its calls or its words.
func (c *talk) add(role string, parts ...any) (calls []fakegemini.FunctionCall, words string) {
	c.t.Helper()
	content, err := json.Marshal(map[string]any{"role": role, "parts": parts})
	if err != nil {
		c.t.Fatal(err)
	}
	c.contents = append(c.contents, content)
	var declared []any
	for _, name := range slices.Sorted(maps.Keys(c.tools)) {
		schema := c.tools[name]
		declared = append(declared,
			map[string]any{"name": name, "description": c.described(name),
				"parametersJsonSchema": json.RawMessage(schema)})
	}
	body, err := json.Marshal(map[string]any{
		"contents": c.contents, "tools": []any{map[string]any{"functionDeclarations": declared}},
		"systemInstruction": map[string]any{"parts": []any{map[string]any{"text": c.system}}},
		"toolConfig": map[string]any{"functionCallingConfig": map[string]any{"mode": c.mode,
			"allowedFunctionNames": c.allowed}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/v1beta/models/demo:generateContent",
		strings.NewReader(string(body)))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("x-goog-api-key", "k")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	var out struct {
		Candidates []struct{ Content json.RawMessage }
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || len(out.Candidates) != 1 {
		c.t.Fatalf("%s, %v: %v", res.Status, err, c.server.Refused())
	}
	c.contents = append(c.contents, out.Candidates[0].Content)
	var answer fakegemini.Content
	if err := json.Unmarshal(out.Candidates[0].Content, &answer); err != nil {
		c.t.Fatal(err)
	}
	for _, p := range answer.Parts {
		if p.FunctionCall != nil {
			calls = append(calls, *p.FunctionCall)
		}
	}
	return calls, textOf(answer)
}

func (c *talk) say(prompt string) ([]fakegemini.FunctionCall, string) {
	c.t.Helper()
	return c.add("user", map[string]any{"text": prompt})
}

// play sends the prompt, answers each call with the response of its tool, and returns the calls and the last words.
func (c *talk) play(prompt string, responses map[string]string) (made []string, words string) {
	c.t.Helper()
	calls, words := c.say(prompt)
	for range 5 {
		if len(calls) == 0 {
			return made, words
		}
		var parts []any
		for _, call := range calls {
			made = append(made, fmt.Sprintf("%s %s", call.Name, call.Args))
			response := responses[call.Name]
			if response == "" {
				response = `{"output":"{\"ok\":true}"}`
			}
			parts = append(parts, map[string]any{"functionResponse": map[string]any{"id": call.ID, "name": call.Name,
				"response": json.RawMessage(response)}})
		}
		calls, words = c.add("user", parts...)
	}
	c.t.Fatalf("it does not end: %q", made)
	return nil, ""
}

func without(tools map[string]string, names ...string) map[string]string {
	out := map[string]string{}
	for name, schema := range tools {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
			out[name] = schema
		}
	}
	return out
}

func TestPageRequests(t *testing.T) {
	noneOf := func(what string) string {
		return "I found Blue Mug, Steel Travel Mug, and none is called “" + what + "”. Which of them do you mean? " +
			"I did nothing yet; please say it again with its whole name."
	}
	const inCart = "In the cart: 2 × Blue Mug (€24.00). Total €24.00."
	found := map[string]string{"action_searchProducts": twoMugs}
	onlyGeneric := map[string]string{"trigger-interaction": generic, "fill-input": generic}
	for name, c := range map[string]struct {
		tools     map[string]string
		prompt    string
		responses map[string]string
		calls     []string
		words     string
	}{
		"search, quantity, cart": {shopTools, "find a blue mug and put two in the cart", found,
			[]string{`action_searchProducts {"query":"blue mug"}`, `fill-quantity {"key":"mug-blue","value":"2"}`,
				`click-add-to-cart {"key":"mug-blue"}`},
			"I put 2 × Blue Mug into the cart. " + inCart},
		"in other words": {shopTools, "Please add 3 blue mugs to my cart!", found,
			[]string{`action_searchProducts {"query":"blue mugs"}`, `fill-quantity {"key":"mug-blue","value":"3"}`,
				`click-add-to-cart {"key":"mug-blue"}`},
			"I put 3 × Blue Mug into the cart. " + inCart},
		"without a quantity field it clicks twice": {without(shopTools, "fill-quantity", "fill-cart-quantity"),
			"find a blue mug and put two in the cart", found,
			[]string{`action_searchProducts {"query":"blue mug"}`, `click-add-to-cart {"key":"mug-blue"}`,
				`click-add-to-cart {"key":"mug-blue"}`},
			"I put 2 × Blue Mug into the cart. " + inCart},
		"without a search it looks": {without(shopTools, "action_searchProducts"), "put a red mug in the cart", nil,
			[]string{`fill-quantity {"key":"mug-red","value":"1"}`, `click-add-to-cart {"key":"mug-red"}`},
			"I put 1 × Red Mug into the cart. " + inCart},
		"with the generic tools": {onlyGeneric, "put two red mugs in the cart", nil,
			[]string{`fill-input {"coordinate":["products","mug-red","quantity"],"value":"2"}`,
				`trigger-interaction {"coordinate":["products","mug-red","add-to-cart"],"event":"click"}`},
			"I put 2 × Red Mug into the cart. " + inCart},
		"nothing is found": {shopTools, "find a unicorn and put it in the cart",
			map[string]string{"action_searchProducts": `{"output":{"products":[],"total":0}}`},
			[]string{`action_searchProducts {"query":"unicorn"}`}, "I searched for “unicorn” and found nothing."},
		"found, but not on the page": {shopTools, "find a travel mug and put one in the cart", found,
			[]string{`action_searchProducts {"query":"travel mug"}`},
			"I found Steel Travel Mug (€24.00), but this page has no button that puts it into the cart."},
		"the search fails": {shopTools, "find a blue mug and put two in the cart",
			map[string]string{"action_searchProducts": `{"error":"The shop is closed."}`},
			[]string{`action_searchProducts {"query":"blue mug"}`}, "The search did not work. The shop is closed."},
		"the page fails": {shopTools, "find a blue mug and put two in the cart",
			map[string]string{"action_searchProducts": twoMugs,
				"click-add-to-cart": `{"output":"{\"ok\":false,\"error\":\"The button is not there.\"}"}`},
			[]string{`action_searchProducts {"query":"blue mug"}`, `fill-quantity {"key":"mug-blue","value":"2"}`,
				`click-add-to-cart {"key":"mug-blue"}`},
			"That was not done: The button is not there. " + inCart},
		"the page fails, in a sentence about it": {shopTools, "check out",
			map[string]string{"click-checkout": `{"error":"The page could not do it: {\"ok\":false,\"error\":\"Check out is disabled.\"}"}`},
			[]string{`click-checkout {}`}, "That was not done: Check out is disabled."},
		"the fresh state counts": {shopTools, "put a blue mug in the cart",
			map[string]string{"action_searchProducts": twoMugs,
				"click-add-to-cart": `{"output":"{\"ok\":true,\"pageState\":{\"viewState\":{\"cart\":[{\"name\":\"Blue Mug\",\"quantity\":\"3\"}]}}}"}`},
			[]string{`action_searchProducts {"query":"blue mug"}`, `fill-quantity {"key":"mug-blue","value":"1"}`,
				`click-add-to-cart {"key":"mug-blue"}`},
			"I put 1 × Blue Mug into the cart. In the cart: 3 × Blue Mug."},
		"out of the cart": {shopTools, "remove the blue mug from my cart", nil,
			[]string{`click-remove {"key":"mug-blue"}`}, "I took “blue mug” out of the cart. " + inCart},
		"not in the cart": {shopTools, "take the red mug out of the cart", nil, nil,
			"I see no “red mug” in the cart that I could take out. " + inCart},
		"what is in it": {shopTools, "What is in my cart?", nil, nil, inCart},
		"what is found": {shopTools, "find mugs", found, []string{`action_searchProducts {"query":"mugs"}`},
			"I found Blue Mug (€12.00), Steel Travel Mug (€24.00)."},
		"one of several": {shopTools, "put a mug in the cart", found,
			[]string{`action_searchProducts {"query":"mug"}`},
			"There are several: Blue Mug, Steel Travel Mug. Which of them do you mean? I did nothing yet; please " +
				"say it again with its whole name."},
		"none of those that are found": {shopTools, "put a green mug in the cart", found,
			[]string{`action_searchProducts {"query":"green mug"}`}, noneOf("green mug")},
		"one by a word for it": {shopTools, "put the cheapest mug in the cart", found,
			[]string{`action_searchProducts {"query":"cheapest mug"}`}, noneOf("cheapest mug")},
		"two things": {shopTools, "put a blue mug and a red mug in the cart", found,
			[]string{`action_searchProducts {"query":"blue mug and a red mug"}`}, noneOf("blue mug and a red mug")},
		"all things": {shopTools, "put all mugs in the cart", found,
			[]string{`action_searchProducts {"query":"all mugs"}`}, noneOf("all mugs")},
		"a number that is too large": {shopTools, "put 1000000 blue mugs in the cart", found,
			[]string{`action_searchProducts {"query":"1000000 blue mugs"}`}, noneOf("1000000 blue mugs")},
		"none at all": {shopTools, "put 0 blue mugs in the cart", found, nil,
			"How many do you want in the cart? I did nothing yet."},
		"more than the button does": {shopTools, "check out with PayPal", nil, nil,
			"I do one thing on a page at a time, so I did nothing yet. Please say “with PayPal” after the rest was " +
				"done, or leave it out."},
		"one of several on the page": {without(shopTools, "action_searchProducts"), "rate the mug 5 stars", nil, nil,
			"There are several: Blue Mug, Red Mug. Which of them do you mean? I did nothing yet; please say it again " +
				"with its whole name."},
		"a second wish": {shopTools, "put a blue mug in the cart and rate it 5 stars", nil, nil,
			"I do one thing on a page at a time, so I did nothing yet. Please say “rate it 5 stars” after the " +
				"rest was done, or leave it out."},
		"fill in": {shopTools, "type teapot into the search field", nil,
			[]string{`fill-search {"value":"teapot"}`}, "I put “teapot” into “search”."},
		"click on an item": {shopTools, "click add to cart for the red mug", nil,
			[]string{`click-add-to-cart {"key":"mug-red"}`}, "I clicked “add to cart for the red mug”."},
		"check out": {shopTools, "check out",
			map[string]string{"click-checkout": `{"output":"{\"ok\":false,\"error\":\"Only the user may click this.\"}"}`},
			[]string{`click-checkout {}`},
			"That was not done: Only the user may click this."},
		"the mood": {shopTools, "I feel great today", nil,
			[]string{`select-mood {"value":"great"}`, `click-submit-mood {}`},
			"I told the form that you feel great. The page says: “You feel great. Keep it up!”"},
		"the mood, and why": {shopTools, "I'm exhausted because it is late", nil,
			[]string{`select-mood {"value":"tired"}`, `fill-mood-note {"value":"it is late"}`, `click-submit-mood {}`},
			"I told the form that you feel tired. The page says: “You feel great. Keep it up!”"},
		"no such mood": {shopTools, "I feel purple today", nil, nil,
			"The form takes these moods: great, fine, tired, sad. Which is nearest to “purple”?"},
		"a second wish behind a rating": {shopTools, "rate the green mug 2 stars and put two in the cart", nil, nil,
			"I do one thing on a page at a time, so I did nothing yet. Please say “put two in the cart” after the " +
				"rest was done, or leave it out."},
		"a rating": {shopTools, "rate the blue mug 5 stars",
			map[string]string{"action_submitRating": `{"output":{"productId":"mug-blue","stars":5,"ratings":1}}`},
			[]string{`action_submitRating {"productId":"mug-blue","stars":5}`},
			"The rating of blue mug with 5 stars was submitted."},
		"a rating with a comment": {shopTools, "give the red mug four out of five stars, lovely colour",
			map[string]string{"action_submitRating": `{"error":"The user rejected this; it was not done."}`},
			[]string{`action_submitRating {"comment":"lovely colour","productId":"mug-red","stars":4}`},
			"The rating of red mug with 4 stars was not submitted: you rejected it."},
		"a rating that was edited": {shopTools, "rate the blue mug 5 stars",
			map[string]string{"action_submitRating": `{"output":{"result":{"ratings":1},` +
				`"executedArgs":{"productId":"mug-red","stars":2},"editedBy":"user"}}`},
			[]string{`action_submitRating {"productId":"mug-blue","stars":5}`},
			"The rating of Red Mug with 2 stars was submitted, with your changes."},
		"a rating of what is not on the page": {shopTools, "rate the travel mug two stars", found,
			[]string{`action_searchProducts {"query":"travel mug"}`,
				`action_submitRating {"productId":"mug-travel","stars":2}`},
			"The rating of travel mug with 2 stars was submitted."},
	} {
		t.Run(name, func(t *testing.T) {
			made, words := newTalk(t, c.tools, shopState).play(c.prompt, c.responses)
			if got, want := strings.Join(made, "\n"), strings.Join(c.calls, "\n"); got != want {
				t.Errorf("called\n%s\nwant\n%s", got, want)
			}
			if words != c.words {
				t.Errorf("said  %s\nwant  %s", words, c.words)
			}
		})
	}
}

func TestPageHiddenElements(t *testing.T) {
	state := strings.Replace(shopState, `{"coordinate":["products","mug-red","add-to-cart"]}`,
		`{"refName":"add-to-cart","items":[{"coordinate":["products","mug-red","add-to-cart"],"hidden":true}]}`, 1)
	made, _ := newTalk(t, without(shopTools, "action_searchProducts"), state).play("put a red mug in the cart", nil)
	want := `fill-search {"value":"Red Mug"}, fill-quantity {"key":"mug-red","value":"1"}, click-add-to-cart {"key":"mug-red"}`
	if got := strings.Join(made, ", "); got != want {
		t.Errorf("called %s, want %s", got, want)
	}
}

// TestPageOtherRequests checks that the model still writes e-mails on a page, and says what it cannot do.
func TestPageOtherRequests(t *testing.T) {
	for prompt, want := range map[string]string{
		"email ana@example.com that the demo is at ten":  "gmail_send",
		"schedule a meeting 'standup' tomorrow at 10":    "calendar_event_create",
		"put the standup in my calendar tomorrow at ten": "calendar_event_create", "delete my account": "", "hello": "",
	} {
		calls, words := newTalk(t, shopTools, shopState).say(prompt)
		if want == "" && (len(calls) > 0 || !strings.Contains(words, "Try one of these:\n- ")) || want != "" &&
			(len(calls) != 1 || calls[0].Name != want) {
			t.Errorf("%q: called %v and said %q", prompt, calls, words)
		}
	}
}

// TestPageMixedRequest checks a prompt with a request for the page and one for an e-mail. The model does neither, and
// says so.
func TestPageMixedRequest(t *testing.T) {
	const prompt = "put two blue mugs in the cart and email ana@example.com that they are bought"
	if calls, words := newTalk(t, shopTools, shopState).say(prompt); len(calls) > 0 ||
		!strings.Contains(words, "more than one thing") {
		t.Errorf("%q: called %v and said %q", prompt, calls, words)
	}
	_, words := newTalk(t, shopTools, shopState).say("hello")
	if strings.Contains(words, "ana@example.com") || !strings.Contains(words, "cart") {
		t.Errorf("on a page it speaks of other trades than the page's: %q", words)
	}
}

func TestCartWithoutPage(t *testing.T) {
	tools := map[string]string{"gmail_send": nothing}
	if calls, words := newTalk(t, tools, "{}").say("put two blue mugs in the cart"); len(calls) > 0 ||
		!strings.Contains(words, "I did nothing about it") {
		t.Errorf("called %v and said %q", calls, words)
	}
}

func TestPageCallingModeNone(t *testing.T) {
	c := newTalk(t, shopTools, shopState)
	c.mode = "NONE"
	if calls, words := c.say("find a blue mug and put two in the cart"); len(calls) > 0 ||
		!strings.Contains(words, "I may call no tools in this answer") {
		t.Errorf("called %v and said %q", calls, words)
	}
}

// TestPageRequestsIndependent checks that a second request in a conversation does not depend on the first.
func TestPageRequestsIndependent(t *testing.T) {
	c := newTalk(t, shopTools, shopState)
	for range 2 {
		if made, _ := c.play("find a blue mug and put two in the cart",
			map[string]string{"action_searchProducts": twoMugs}); len(made) != 3 {
			t.Errorf("called %q", made)
		}
	}
}

// FuzzPage checks that there is an answer for any page and any prompt.
func FuzzPage(f *testing.F) {
	f.Add("find a blue mug and put two in the cart", shopState)
	f.Add(strings.Repeat("put ", 200)+"in the cart", strings.Repeat(`{"viewState":`, 300))
	f.Add("I feel "+strings.Repeat("so ", 200)+"great",
		`{"viewState":[{"name":{}},1],"interactions":{"coordinate":[""]}}`)
	answer := demomodel.Model(func() time.Time { return now })
	f.Fuzz(func(t *testing.T, prompt, state string) {
		r := fakegemini.Request{System: state,
			Contents: []fakegemini.Content{{Role: "user", Parts: []fakegemini.Part{{Text: &prompt}}}}}
		for name, schema := range shopTools {
			r.Tools = append(r.Tools,
				fakegemini.Declaration{Name: name, Description: name, Parameters: json.RawMessage(schema)})
		}
		if turn := answer(r); turn.Text == "" && len(turn.Calls) == 0 {
			t.Errorf("nothing to say to %q", prompt)
		}
	})
}

// TestPageCartCount uses a page that reports the number of items in its cart without listing them.
func TestPageCartCount(t *testing.T) {
	for count, want := range map[string]string{"0": "The cart is empty.", "1": "There is 1 thing in the cart.",
		"3": "There are 3 things in the cart."} {
		c := newTalk(t, shopTools, `{"viewState":{"cart-count":"`+count+`"},"interactions":[]}`)
		if _, got := c.add("user", map[string]string{"text": "What is in my cart?"}); got != want {
			t.Errorf("%s: %q", count, got)
		}
	}
}
