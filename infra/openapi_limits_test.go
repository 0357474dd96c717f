package infra_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// limits maps every limited field to the constant of its limit.
var limits = map[string]string{"Ask/prompt": "loop.MaxPrompt", "Resolution/comment": "planner.MaxPrompt",
	"Wish/prompt": "planner.MaxPrompt", "Refinement/refinementPrompt": "planner.MaxPrompt",
	"Wish/timeZone": "timezone.MaxName", "Wish/locale": "preference.MaxLanguage",
	"Connect/returnTo": "linking.maxReturnTo", "ConnectGitHub/returnTo": "linking.maxReturnTo",
	"ChatMessage/message": "chat.MaxMessage", "ChatMessage/history": "chat.maxContents",
	"ChatMessage/toolDefinitions": "chat.MaxTools", "ChatMessage/pageState": "chat.MaxPageState",
	"ChatResults/history": "chat.maxContents", "ChatResults/toolDefinitions": "chat.MaxTools",
	"ChatResults/pageState": "chat.MaxPageState",
	"TurnRequest/history":   "chat.maxTurn", "Step/output": "tool.MaxStepOutput",
	"ChatResult/result": "chat.MaxResult", "ToolDefinition/description": "chat.MaxDescription",
	"ToolDefinition/inputSchema": "chat.MaxSchema",
	"Agent/examples":             "registry.MaxExamples",
	"CallAnswers/results":        "model.MaxCalls",
	"Ask/attachments":            "attachment.MaxFiles",
	"ChatMessage/attachments":    "attachment.MaxFiles",
	"Wish/attachments":           "attachment.MaxFiles",
	"Refinement/attachments":     "attachment.MaxFiles",
	"Ask/timeZone":               "timezone.MaxName", "ChatMessage/timeZone": "timezone.MaxName",
	"ChatResults/timeZone": "timezone.MaxName",
	"Ask/locale":           "preference.MaxLanguage", "ChatMessage/locale": "preference.MaxLanguage",
	"ChatResults/locale": "preference.MaxLanguage",
	"NewHost/name":       "terminal/hosts.maxName", "HostEdit/name": "terminal/hosts.maxName",
	"NewHost/hostKeys": "terminal/hosts.maxHostKeys", "NewHost/knownHosts": "terminal/hosts.maxKnownHosts",
	"NewHost/readPaths": "terminal/hosts.maxReadPaths", "HostEdit/readPaths": "terminal/hosts.maxReadPaths",
	"NewAuth/privateKey": "terminal/hosts.maxPrivateKey", "NewAuth/passphrase": "terminal/hosts.maxPassword",
	"Approval/findings": "run.MaxFindings", "Approval/insteadOf": "run.MaxEarlier",
	"Resolution/rejects": "run.MaxEarlier", "Rename/title": "run.MaxTitle",
	"EditNote/text": "run.MaxNote", "Note/text": "run.MaxNote", "Memory/notes": "run.MaxNotes",
	"Preferences/language": "preference.MaxLanguage", "Preferences/signature": "preference.MaxSignature",
	"WorkingHours/timeZone": "timezone.MaxName",
	"NewDevice/endpoint":    "webpush.MaxEndpoint", "Devices/subscriptions": "devices.Most",
	"NewToken/name": "agenttoken.MaxName", "Tokens/tokens": "agenttoken.Most",
	"NewPasskey/name": "accounts/passkeys.maxName", "PasskeyName/name": "accounts/passkeys.maxName",
	"Passkeys/passkeys": "passkey.Most",
	"NewAuth/password":  "terminal/hosts.maxPassword", "NewTerminal/cwd": "terminal.maxCwd",
	"AGUIInput/threadId": "stream.maxID", "AGUIInput/runId": "stream.maxID", "AGUIInput/resume": "agui.maxResumed",
	"AGUIInput/context": "loop.maxPageContexts",
	"AGUIInput/tools":   "chat.MaxTools", "AGUITool/description": "chat.MaxDescription",
	"AGUITool/parameters": "chat.MaxSchema",
	"UIRequest/id":        "stream.maxID", "UIRequest/timeZone": "timezone.MaxName",
	"UIRequest/locale": "preference.MaxLanguage"}

// TestDescribedLimits compares every limit of a field, and the limits in the description's text, with the constants.
func TestDescribedLimits(t *testing.T) {
	doc := description(t)
	described := map[string][]int{}
	for name, schema := range doc.Components.Schemas {
		for field, ref := range schema.Value.Properties {
			s, key := ref.Value, name+"/"+field
			if n := s.MaxLength; n != nil {
				described[key] = append(described[key], int(*n))
			}
			if n := s.MaxItems; n != nil {
				described[key] = append(described[key], int(*n))
			}
			if n, ok := s.Extensions["x-maxBytes"].(float64); ok {
				described[key] = append(described[key], int(n))
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(limits)); !slices.Equal(got, want) {
		t.Fatalf("limits are described of %v, and known of %v", got, want)
	}
	for key, of := range limits {
		for _, n := range described[key] {
			if want := constant(t, of); n != want {
				t.Errorf("%s is described with a limit of %d, and %s is %d", key, n, of, want)
			}
		}
	}
	agui := doc.Components.Schemas["AGUIInput"].Value.Properties
	for sentence, words := range map[string]string{
		fmt.Sprintf("A body has at most %d MiB", constant(t, "api.maxBody")>>20):      doc.Info.Description,
		fmt.Sprintf("headers have at most %d KiB", constant(t, "api.maxHeaders")>>10): doc.Info.Description,
		fmt.Sprintf("N is limited to 0 to %d",
			constant(t, "api.maxWait")): doc.Components.Parameters["Prefer"].Value.Description,
		fmt.Sprintf("N is limited to 0 to %d",
			constant(t, "api.maxPlanWait")): doc.Components.Parameters["PreferPlan"].Value.Description,
		fmt.Sprintf("The limit is %d KiB",
			constant(t, "loop.maxPageTools")>>10): agui["tools"].Value.Description,
		fmt.Sprintf("The limit is %d KiB",
			constant(t, "loop.maxPageContext")>>10): agui["context"].Value.Description,
		fmt.Sprintf("content (at most %d KiB)", constant(t, "chat.MaxResult")>>10): agui["messages"].Value.Description,
		fmt.Sprintf("At most %d KiB are read",
			constant(t, "queue.MaxPush")>>10): doc.Components.Schemas["Push"].Value.Description,
		fmt.Sprintf("more than %d MiB",
			constant(t, "api.maxBody")>>20): *doc.Components.Responses["TooLarge"].Value.Description,
		fmt.Sprintf("more than %d KiB",
			constant(t, "api.maxHeaders")>>10): *doc.Components.Responses["HeadersTooLarge"].Value.Description,
	} {
		if !strings.Contains(words, sentence) {
			t.Errorf("%q does not say: %s", words, sentence)
		}
	}
}

func constant(t *testing.T, name string) int {
	t.Helper()
	dir, name, _ := strings.Cut(name, ".")
	return read(t, dir).number(t, name)
}

// atLimits sends fields of the maximum length, which must be accepted, and longer ones, which must be refused by name.
func atLimits(t *testing.T, d *described) {
	s := d.open(t, nil, oauth...)
	x := func(n int) string { return strings.Repeat("x", n) }
	definitions := func(n int) (list []any) {
		for i := range n {
			list = append(list, map[string]any{"name": fmt.Sprintf("tool%d", i), "description": "A tool.",
				"inputSchema": map[string]any{"type": "object"}})
		}
		return list
	}
	tool := func(description, title string) []any {
		return []any{map[string]any{"name": "tool", "description": description,
			"inputSchema": map[string]any{"type": "object", "title": title}}}
	}
	const state, schema = len(`{"x":""}`), len(`{"title":"","type":"object"}`)
	for _, c := range []struct {
		op, field, limit string
		body             func(n int) map[string]any
	}{
		{"run", "prompt", "Ask/prompt", func(n int) map[string]any { return map[string]any{"prompt": x(n)} }},
		{"connectGoogle", "returnTo", "Connect/returnTo",
			func(n int) map[string]any { return map[string]any{"returnTo": "/" + x(n-1)} }},
		{"resolveApproval", "comment", "Resolution/comment", func(n int) map[string]any {
			return map[string]any{"approvalId": nobody + "-1", "decision": "refine", "comment": x(n)}
		}},
		{"answerCalls", "results/0/result", "ChatResult/result", func(n int) map[string]any {
			return map[string]any{"results": []any{map[string]string{"callId": nobody, "result": x(n)}}}
		}},
		{"answerCalls", "results", "CallAnswers/results", func(n int) map[string]any {
			var results []any
			for i := range n {
				results = append(results, map[string]string{"callId": fmt.Sprint(nobody, i), "result": "1"})
			}
			return map[string]any{"results": results}
		}},
		{"chat", "message", "ChatMessage/message",
			func(n int) map[string]any { return map[string]any{"message": x(n)} }},
		{"chat", "toolDefinitions", "ChatMessage/toolDefinitions", func(n int) map[string]any {
			return map[string]any{"message": "Hello.", "toolDefinitions": definitions(n)}
		}},
		{"chat", "pageState", "ChatMessage/pageState", func(n int) map[string]any {
			return map[string]any{"message": "Hello.", "pageState": map[string]any{"x": x(n - state)}}
		}},
		{"chat", "toolDefinitions/0/description", "ToolDefinition/description", func(n int) map[string]any {
			return map[string]any{"message": "Hello.", "toolDefinitions": tool(x(n), "")}
		}},
		{"chat", "toolDefinitions/0/inputSchema", "ToolDefinition/inputSchema", func(n int) map[string]any {
			return map[string]any{"message": "Hello.", "toolDefinitions": tool("A tool.", x(n-schema))}
		}},
	} {
		n := constant(t, limits[c.limit])
		var params []string
		if c.op == "answerCalls" {
			params = []string{nobody}
		}
		for _, one := range []int{n, n + 1} {
			a := s.call(t, ask{op: c.op, params: params, body: inJSON(t, c.body(one))})
			refused := a.status == 400 && strings.HasSuffix(a.field(t), c.field)
			if refused != (one > n) || a.status == 400 && !refused {
				t.Errorf("%s: %s of %d answered %d %s", c.op, c.field, one, a.status, cut(a.body))
			}
		}
	}
}
