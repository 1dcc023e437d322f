package licence

// What is fuzzed.
var (
	ParseRequest = parseRequest
	SPC          = spc
	CKC          = ckc
)
