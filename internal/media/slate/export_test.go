package slate

// Parameters and WithSets are for tests from outside.
var (
	Parameters = parameters
	WithSets   = withSets
)
