package infra_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/countersign-run/countersign/shared/api"
)

func description(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background(), openapi3.IsOpenAPI31OrLater(),
		openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestDescribedRoutes compares the described routes with the served ones.
func TestDescribedRoutes(t *testing.T) {
	served := []string{"GET /health", "GET /config.json", "GET /openapi.json"}
	for _, f := range api.Functions {
		for _, r := range f.Routes {
			served = append(served, r.Method+" "+r.Path)
		}
	}
	var described []string
	for path, item := range description(t).Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(described)
	if !slices.Equal(served, described) {
		t.Errorf("served %v\ndescribed %v", served, described)
	}
}

// answersOf maps the schemas of responses to their structs. namesOf maps those of requests, and of responses that a
// function returns in part; only their field names are compared.
var (
	answersOf = map[string]string{"Action": "run.ActionView",
		"ActionRecord": "run.ActionRecord", "Compensation": "run.Compensation", "ReceiptFile": "receipt.File",
		"Receipt":     "receipt.Receipt",
		"ReceiptCard": "receipt.Card",
		"ReceiptKeys": "receipt.Keys", "ReceiptKey": "receipt.Key", "Step": "tool.Step", "TransferredFile": "tool.File",
		"Approval": "run.ApprovalView",
		"Event":    "run.EventView", "Act": "run.ActView", "PlanEvent": "plan.Event", "PlanProposed": "plan.Proposed",
		"PlanConfirmed": "plan.Confirmed", "PlanClosed": "plan.Closed", "PlanChanged": "plan.Changed",
		"PlanChange": "plan.Change", "GrantRevoked": "plan.Revoked", "TaskStarted": "plan.Started",
		"TaskFinished": "plan.Finished", "Plan": "plan.Plan", "PlanTask": "plan.Task", "PlanGrant": "plan.Grant",
		"Compressed": "run.CompressedView", "Usage": "model.Usage", "Preview": "tool.Preview",
		"PreviewField": "tool.Field", "Moment": "tool.Moment", "Finding": "run.Finding", "Reading": "run.Reading",
		"Thread": "records.ThreadView", "Message": "run.Message", "AttachedFile": "attachment.Facts",
		"AuditEntry": "audit.Entry", "AuditAbout": "run.About",
		"AuditHead": "audit.Head", "Allowed": "records.AllowView",
		"Connection": "linking.Connection", "ChatCall": "chat.Pending", "ChatEnded": "chat.Ended",
		"TurnCall":  "chat.TurnCall",
		"TurnReply": "chat.TurnReply", "Configuration": "web.configuration",
		"Run": "api.runAnswer", "ResolvedRun": "api.postResolve", "Swept": "api.swept", "Problem": "api.errorBody",
		"Failure": "api.fail", "Ok": "api.ok", "ActionResult": "api.actionAnswer", "WaitingCall": "run.CallView",
		"Approvals": "api.getPending", "Threads": "api.getThreads", "Messages": "api.getMessages",
		"Renamed": "api.patchThread",
		"Audit":   "api.getAudit", "Allowlist": "api.getAllowlist", "Tokens": "api.getTokens",
		"Devices": "api.getDevices", "AddedDevice": "api.postDevice", "RemovedDevice": "api.deleteDevice",
		"Device": "records.DeviceView", "Reminders": "api.remindersAnswer",
		"Note": "run.Note", "Memory": "api.getMemory", "Preferences": "preference.Set",
		"WorkingHours": "preference.WorkingHours", "PreferencesAnswer": "api.patchMemory",
		"EditedNote": "api.patchNote",
		"Passkey":    "accounts/passkeys.View", "Passkeys": "api.passkeysAnswer", "AddedPasskey": "api.passkeyAnswer",
		"PasskeyChallenge": "api.postPasskeyChallenge", "PasskeyOptions": "passkey.Options",
		"PasskeyDescriptor": "passkey.Descriptor",
		"MadeToken":         "api.postToken", "Token": "records.TokenView",
		"ProtectedResource": "api.resource", "Via": "run.Delegate", "Agents": "api.getAgents",
		"Agent": "api.agentView", "Server": "api.serverView",
		"Consent": "api.consentAnswer", "Unlinked": "api.unlinkedAnswer", "Deleting": "api.deleteThread",
		"AGUIEvent": "agui.Event", "AGUIMessage": "agui.Message", "AGUIInterrupt": "agui.Interrupt",
		"UIChunk": "ui.Chunk", "UIRun": "ui.RunData",
		"PingLine": "api.pingLine", "DeltaLine": "api.deltaLine", "ThoughtLine": "api.thoughtLine",
		"FileLine":   "api.fileLine",
		"OutputLine": "api.outputLine",
		"BytesLine":  "api.bytesLine", "StatusLine": "api.statusLine",
		"ActionLine": "api.actionLine", "ResultLine": "api.resultLine", "ErrorLine": "api.errorLine",
		"ChatStatusLine": "api.chatStatusLine", "HostKey": "terminal.HostKey", "HostAuth": "api.authView",
		"Host": "api.hostView", "AddedHost": "api.hostAnswer", "Hosts": "api.getHosts", "Scanned": "api.postScan",
		"Checked": "api.postCheck", "Terminal": "api.terminalView", "OpenedTerminal": "api.terminalAnswer",
		"Session": "planner.Session", "SessionTask": "planner.Task", "LogEntry": "planner.LogEntry",
		"LogAction": "plan.Action", "SessionHead": "planner.Listed", "Sessions": "api.getPlans",
		"ReviewComments": "api.getReviews", "ReviewComment": "planner.Comment",
		"ContinueLine": "api.continueLine",
		"Terminals":    "api.getTerminals", "Connections": "api.connectionsAnswer"}
	namesOf = map[string]string{"Wish": "api.postPlan/in", "Refinement": "api.postRefine/in",
		"Confirmation": "api.postExecute/in", "Ask": "api.ask/in", "Resolution": "api.postResolve/in",
		"Attachment":   "api.attachedBody",
		"UploadedFile": "api.uploadedBody",
		"CallAnswers":  "api.postAnswers/in", "TurnRequest": "api.postGeminiAgent/in",
		"TakeBack": "api.postCompensate/in",
		"Connect":  "api.googleRequest", "ConnectGitHub": "api.githubRequest", "ChatMessage": "api.postChat/in",
		"ChatResults": "api.postChatResults/in",
		"ChatResult":  "chat.Result", "ToolDefinition": "chat.ToolDefinition", "Health": "app.Health",
		"ScanRequest": "terminal.ScanRequest", "NewHost": "terminal.NewHost", "NewAuth": "terminal.NewAuth",
		"HostEdit": "terminal.HostEdit", "Rename": "api.patchThread/in",
		"EditNote": "api.patchNote/in", "SetPreferences": "api.patchMemory/in", "NewTerminal": "terminal.NewTerminal",
		"NewToken": "api.postToken/in", "NewPasskey": "api.NewPasskey", "PasskeyName": "api.patchPasskey/in",
		"NewDevice":    "api.postDevice/in",
		"SetReminders": "api.patchReminders/in"}
	// apart lists the schemas that do not correspond to exactly one struct.
	apart = map[string]string{"Push": "Google's envelope", "ChatResponse": "half of chat.Reply",
		"ChatCalls": "the other half", "TaskReflected": "it embeds a struct",
		"SessionGrant": "it embeds a struct of another package",
		"AGUIInput":    "fields of it are passed over",
		"AGUITool":     "fields of it are passed over",
		"UIRequest":    "it embeds a struct of another package",
		"SignIn":       "it embeds a pointer, whose fields may all be absent"}
)

// TestDescribedFields compares the schemas with the structs. They must have the same names, and a field is required
// exactly if it is never omitted.
func TestDescribedFields(t *testing.T) {
	schemas := description(t).Components.Schemas
	for name, s := range schemas {
		of, answered := answersOf[name]
		if !answered {
			of = namesOf[name]
		}
		if object := s.Value.Type.Is("object"); object == (of == "" && apart[name] == "") {
			t.Errorf("%s has no struct, or is not an object", name)
		}
		if of == "" {
			continue
		}
		dir, kind, _ := strings.Cut(of, ".")
		needed, all := read(t, dir).fields(t, kind)
		if got := slices.Sorted(maps.Keys(s.Value.Properties)); !slices.Equal(got, all) {
			t.Errorf("%s is described with %v, and has %v", name, got, all)
		}
		if got := slices.Sorted(slices.Values(s.Value.Required)); answered && !slices.Equal(got, needed) {
			t.Errorf("%s is described to need %v, and always has %v", name, got, needed)
		}
	}
}

// TestDescribedWords compares every enum with the constants of its type.
func TestDescribedWords(t *testing.T) {
	schemas := description(t).Components.Schemas
	for name, of := range map[string]string{"Class": "fault.Class", "Code": "fault.Code",
		"RunStatus": "run.Status", "ActionStatus": "run.ActionStatus", "Execution": "run.Execution",
		"Kind": "run.Kind", "Decision": "run.Decision", "EventType": "run.EventType", "Role": "run.Role",
		"Category": "chat.Category", "StepKind": "tool.StepKind", "AuditKind": "audit.Requested",
		"SessionStatus": "plan.Status", "TaskStatus": "plan.TaskStatus", "AuthKind": "terminal.AuthKind",
		"AutoRun": "terminal.AutoRun"} {
		dir, kind, _ := strings.Cut(of, ".")
		var got []string
		for _, word := range append(schemas[name].Value.Enum, schemas[name].Value.Examples...) {
			got = append(got, word.(string))
		}
		slices.Sort(got)
		if want := read(t, dir).strings(t, kind); !slices.Equal(got, want) {
			t.Errorf("%s is described with %v, and has %v", name, got, want)
		}
	}
}
