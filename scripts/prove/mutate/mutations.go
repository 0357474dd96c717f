package mutate

import "slices"

// mutation takes one mechanism away. Each of its edits is a text that occurs once in its file.
type mutation struct {
	name  string
	file  string
	edits []edit
	tests []test // any one of them must fail
}

type edit struct{ old, new string }

// test is a selection of one package's tests, and further flags for them.
type test struct{ pkg, run, flags string }

// quietly keeps rapid from writing a file for each failure, and from searching long for the shortest.
const quietly = "-rapid.nofailfile -rapid.shrinktime=1s -rapid.seed=1"

// model is the model test and the tests beside it; a few hundred sequences are enough to notice that a mechanism is
// missing.
var model = []test{{"./shared/loop", "Test(Model|Scenarios|KilledAtEveryCommit|OneProcessAmongMany|OneDecisionAmongMany)/embedded", quietly + " -sequences=500"}}

// mutations are the ten of the design (reliability §3), in its order, as they apply to this code, the first once for
// each store; and those of what is deployed.
var mutations = slices.Concat([]mutation{
	{"drop the LastUpdateTime (embedded store)", "shared/store/embedded/commit.go",
		[]edit{{"data = ? WHERE path = ? AND version = ?`", "data = ? WHERE path = ? AND version <> -?`"}}, model},
	{"drop the LastUpdateTime (Firestore)", "shared/store/firestore/commit.go",
		[]edit{{"	case w.Doc.Version.IsZero():\n		return nil\n	}", "	case w.Doc.Version.IsZero():\n		return nil\n	case w.Op == store.OpUpdate:\n		return &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: true}}\n	}"}},
		[]test{{"./shared/store/firestore", "TestEmulator", quietly}}},
	{"skip ReadTime", "shared/loop/transition.go",
		[]edit{{"return ex.storeTime.Add(max(0, ex.Now().Sub(ex.localTime))).UTC()", "return ex.Now().UTC()"}}, model},
	{"ask the model again on resume", "shared/loop/advance.go",
		[]edit{{"\t\tif a.Runnable() {\n\t\t\treturn stepExecute, a\n", "\t\tif a.Runnable() {\n\t\t\treturn stepCallModel, nil\n"}}, model},
	{"publish before commit", "shared/loop/resolve.go",
		[]edit{{"	decided := false //", "\tex.publish(ctx)\n\tdecided := false //"}, {"\tif decided && ex.state.End == nil {\n\t\tex.publish(ctx)\n\t}\n", "	_ = decided\n"}}, model},
	{"ack before record", "shared/api/runs.go",
		[]edit{{"	_, err = r.api.Loop.Advance(ctx, runID, nil)\n	switch {", "	r.w.WriteHeader(http.StatusNoContent)\n	_, err = r.api.Loop.Advance(ctx, runID, nil)\n	switch {"}},
		[]test{{"./shared/api", ".", ""}}},
	{"allowlist by domain", "shared/policy/policy.go",
		[]edit{{`func(a string) bool { return held[a].ID == "" }); n > 0 {
		reason`, `func(a string) bool { return !slices.ContainsFunc(in.Allowlist, func(e Entry) bool {
			return e.Recipient[slices.Index([]byte(e.Recipient), '@'):] == a[slices.Index([]byte(a), '@'):]
		}) }); n > 0 {
		reason`}}, []test{{"./shared/policy", ".", quietly}}},
	{"drop cc and bcc from the recipients", "shared/tools/gmail/gmail.go",
		[]edit{{"return slices.Concat(a.To, a.Cc, a.Bcc)", "return slices.Concat(a.To)"}}, []test{{"./shared/tools/gmail", ".", ""}}},
	{"TTL as the only expiry", "shared/loop/resolve.go",
		[]edit{{"\tcase !tx.now.Before(ap.ExpiresAt):\n", "	case false:\n"}}, model},
	{"accept an empty draftId", "shared/tools/gmail/draft.go",
		[]edit{{`	if d == nil || d.Id == "" {`, `	if d == nil {`}}, []test{{"./shared/tools/gmail", ".", ""}}},
	// What a request to the model, a tool's context, the record and the audit must hold (seed 000 §4, §5, §9), and what
	// must not be reachable.
	{"call a tool without the origin", "shared/loop/act.go",
		[]edit{{"Origin: ex.run.Origin, ", ""}}, []test{{"./shared/api", "TestTheToolsContext", ""}}},
	{"ask the model without instructions", "shared/loop/plan.go",
		[]edit{{"System: system, ", "System: system[:0], "}}, []test{{"./shared/loop", "TestWhatTheModelIsAsked", ""}}},
	{"ask the model without history", "shared/loop/start.go",
		[]edit{{"\t\tinput.History = tx.thread.History()\n", ""}}, []test{{"./shared/loop", "TestWhatTheModelIsAsked", ""}}},
	{"a record without toolName", "shared/agent/view.go",
		[]edit{{"ToolName: a.Tool, ", ""}}, []test{{"./shared/api", "TestTheRecordOfAnAction", ""}}},
	{"an audit without policyDecision", "shared/loop/draft.go",
		[]edit{{"e.PolicyDecision, e.Rule, e.ExecutionStatus = a.PolicyDecision, a.Rule,", "e.Rule, e.ExecutionStatus = a.Rule,"}}, []test{{"./shared/api", "TestTheRecordOfAnAction", ""}}},
	{"a page's action without the model's name", "shared/chat/effects.go",
		[]edit{{", Model: e.model}", "}"}}, []test{{"./shared/chat", "TestTheRecordNamesTheModel", ""}}},
	// The forms of case 18 of the gauntlet.
	{"take a page's history whose seal is broken", "shared/chat/history.go",
		[]edit{{"	case err != nil || !c.Key.verifies(seal, data):", "	case err != nil || data == nil || seal == \"-\":"}}, []test{{"./scripts/prove/gauntlet", "TestCases/18", ""}}},
	{"take a page's history that another user was given", "shared/chat/history.go",
		[]edit{{"signed{1, uid, ", "signed{1, \"\", "}}, []test{{"./scripts/prove/gauntlet", "TestCases/18", ""}}},
	{"take a page's answer to a call that was never made", "shared/chat/history.go",
		[]edit{{"	if len(h.calls) == 0 {\n		return fault.Invalid", "	if h == nil {\n		return fault.Invalid"}, {"		case at < 0:\n", "		case at < 0:\n			continue\n		case at == 99:\n"}},
		[]test{{"./scripts/prove/gauntlet", "TestCases/18", ""}}},
	{"the hash of the arguments in the audit", "shared/loop/draft.go",
		[]edit{{"audit.InputHash(tx.nonce(), a.ArgsHash),\n\t\t\ta.ApprovalID", "a.ArgsHash, a.ApprovalID"}}, []test{{"./shared/api", "TestDeletedContentCannotBeGuessed", ""}}},
	{"read another user's run before asking whose it is", "shared/loop/start.go",
		[]edit{{"\tif !d.Exists() || document.RunFieldsOf(d).UID != uid {\n\t\treturn fault.NotFound()\n\t}\n\tif err := ex.checkNotDeleted(ctx, d); err != nil {\n\t\treturn err\n\t}\n\treturn ex.fold(ctx)\n",
			"\tif err := ex.fold(ctx); err != nil {\n\t\treturn err\n\t}\n\tif ex.run.ID == \"\" || ex.run.UID != uid {\n\t\treturn fault.NotFound()\n\t}\n\treturn ex.checkNotDeleted(ctx, d)\n"}},
		[]test{{"./shared/api", "TestForeignIsAsQuickAsMissing", ""}}},
	{"take the cursor of another list", "shared/document/cursor.go",
		[]edit{{" || parts[2] != listName(q) {", " {"}}, []test{{"./shared/api", "TestForeignCursors", ""}}},
	{"begin a run in a conversation that is being deleted", "shared/loop/start.go",
		[]edit{{" || t.UID != req.UID || t.Deleting {", " || t.UID != req.UID {"}}, []test{{"./shared/loop", "TestADeletingConversationIsGone/embedded", ""}}},
	{"delete a conversation without its mark", "shared/records/delete.go",
		[]edit{{"	if err := r.markThread(ctx, uid, id); err != nil {\n		return false, err\n	}\n", ""}}, []test{{"./shared/records", "TestDeletionKilledAtEveryCommit/embedded", ""}}},
	{"link an account off the record", "shared/google/consent.go",
		[]edit{{"a.save(ctx, l, entry...)", "a.save(ctx, l, entry[:0]...)"}}, []test{{"./shared/google", "TestLinksAreInTheAudit", ""}}},
	{"let in addresses of any domain", "shared/app/open.go",
		[]edit{{"Domains: cfg.AllowedDomains, ", ""}}, []test{{"./shared/app", "TestWhoseAddressesMayCall", ""}}},
	{"retry a tool without a handle on 5xx", "shared/loop/act.go",
		[]edit{{"			if !known {\n", "			if !known && false {\n"}}, model},
}, terraform)
