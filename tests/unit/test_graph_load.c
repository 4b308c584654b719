/* Loading: what is accepted, what is refused and how it is said, round trips, the builder. */
#include "graph_fixture.h"

#include <unistd.h>

typedef struct bad_document {
  const char *text, *part;
} bad_document;

#define HEAD "{'schema':'convsched.graph/1','name':'t',"
#define INPUT "'inputs':[{'name':'x','shape':['N',4,8,8],'dtype':'f32'}],"
#define ONE(node) HEAD INPUT "'nodes':[" node "],'outputs':['a']}"
#define ATTRS(op, attrs) ONE("{'name':'a','op':'" op "','inputs':['x'],'attrs':{" attrs "}}")
#define WITH_INPUT(input) \
  HEAD "'inputs':[" input "],'nodes':[" NODE("a", "Relu", "x") "],'outputs':['a']}"
#define K2 "'out_channels':4,'kernel_shape':[3,3]"

static const bad_document bad_documents[] = {
    {"{", "t.json: line 1, column 1"},
    {"", "t.json: line 1, column 0"},
    {"{\n 'schema': 'convsched.gra", "t.json: line 2"},
    {"[1]", "t.json: document: found [1], wanted an object"},
    {"{'schema':'convsched.graph/1','schema':'convsched.graph/1'}", "duplicate object key"},
    {"{'schema':'\xff\xfe'}", "unable to decode byte 0xff"},
    {"{}", "t.json: schema: found nothing, wanted \"convsched.graph/1\""},
    {"{'schema':'convsched.graph/2'}", "schema: found \"convsched.graph/2\""},
    {HEAD INPUT "'nodes':[],'outputs':['a']}", "nodes: found [], wanted an array"},
    {HEAD INPUT "'nodes':{},'outputs':['a']}", "nodes: found {}, wanted an array"},
    {HEAD INPUT "'nodes':[" NODE("a", "Relu", "x") "]}", "outputs: found nothing"},
    {HEAD INPUT "'nodes':[" NODE("a", "Relu", "x") "],'outputs':[3]}", "outputs[0]: found 3"},
    {HEAD INPUT "'nodes':[" NODE("a", "Relu", "x") "],'outputs':['x']}", "outputs[0]: found \"x\""},
    {HEAD INPUT "'nodes':[" NODE("a", "Relu", "x") "],'outputs':['a','a']}",
     "outputs[1]: found \"a\", wanted each output once"},
    {HEAD INPUT "'nodes':[" NODE("a", "Relu", "x") "],'outputs':['b']}",
     "outputs[0]: found \"b\", wanted the name of a node"},
    {HEAD INPUT "'nodes':[" NODE("a", "Relu", "x") "],'outputs':['a'],'extra':1}",
     "document: found unknown key \"extra\""},
    {HEAD INPUT "'nodes':[" NODE("a", "Relu", "x") "],'outputs':['a'],'weights':1}",
     "weights: found 1, wanted a path"},
    {"{'schema':'convsched.graph/1','name':7}", "name: found 7, wanted a name"},
    {WITH_INPUT("{'name':'x','shape':['N',4],'dtype':'f16'}"),
     "inputs[0].dtype: found \"f16\", wanted \"f32\""},
    {WITH_INPUT("{'name':'x','shape':['N',4],'type':'f32'}"),
     "inputs[0]: found unknown key \"type\""},
    {WITH_INPUT("{'name':'x','shape':[4,'N']}"), "inputs[0].shape[1]: found \"N\""},
    {WITH_INPUT("{'name':'x','shape':[0,4]}"), "inputs[0].shape[0]: found 0"},
    {WITH_INPUT("{'name':'x','shape':['N',-4]}"), "inputs[0].shape[1]: found -4"},
    {WITH_INPUT("{'name':'x','shape':[]}"), "inputs[0].shape: found []"},
    {WITH_INPUT("{'name':'x','shape':[1,1,1,1,1,1,1,1,1]}"), "wanted an array of 1 to 8 extents"},
    {WITH_INPUT("{'name':'x','shape':[1,3000000000]}"), "inputs[0].shape[1]: found 3000000000"},
    {WITH_INPUT("{'name':'x','shape':[1,99999999999999999999]}"), "too big integer"},
    {WITH_INPUT("{'name':'x','shape':[2000000000,2000000000,2000000000]}"),
     "inputs[0].shape: found shape [2000000000, 2000000000, 2000000000], wanted one whose size"},
    {WITH_INPUT("{'name':'','shape':['N',4]}"), "inputs[0].name: found \"\""},
    {WITH_INPUT("{'name':'x','shape':['N',4]},{'name':'x','shape':['N',4]}"),
     "inputs[1].name: found duplicate name \"x\" (also of inputs[0])"},
    {ONE(NODE("x", "Relu", "x")), "nodes[0].name: found duplicate name \"x\" (also of inputs[0])"},
    {ONE(NODE("a", "Relu", "x") "," NODE("a", "Relu", "x")),
     "nodes[1].name: found duplicate name \"a\" (also of nodes[0])"},
    {ONE("3"), "nodes[0]: found 3, wanted an object"},
    {ONE("{'op':'Relu','inputs':['x']}"), "nodes[0].name: found nothing"},
    {ONE(NODE("a", "Reloo", "x")), "t.json: nodes[0].op (node \"a\"): found \"Reloo\""},
    {ONE(NODE("a", "Copy", "x")), "nodes[0].op (node \"a\"): found \"Copy\""},
    {ONE("{'name':'a','op':3,'inputs':['x']}"), "nodes[0].op (node \"a\"): found 3"},
    {ONE("{'name':'a','op':'Relu','inputs':['x'],'attributes':{}}"),
     "nodes[0] (node \"a\"): found unknown key \"attributes\""},
    {ONE("{'name':'a','op':'Relu','inputs':['x'],'attrs':[]}"),
     "nodes[0].attrs (node \"a\"): found [], wanted an object"},
    {ONE("{'name':'a','op':'Relu','inputs':'x'}"), "nodes[0].inputs (node \"a\"): found \"x\""},
    {ONE("{'name':'a','op':'Relu','inputs':['x','x']}"), "found 2 inputs, wanted 1 for Relu"},
    {ONE("{'name':'a','op':'Concat','inputs':[],'attrs':{'axis':1}}"),
     "found 0 inputs, wanted at least 1 for Concat"},
    {ONE(NODE("a", "Relu", "y")), "nodes[0].inputs[0] (node \"a\"): found \"y\""},
    {ONE("{'name':'a','op':'Relu','inputs':[7]}"), "nodes[0].inputs[0] (node \"a\"): found 7"},
    {ONE(NODE("a", "Relu", "a")), "nodes[0].inputs (node \"a\"): found a cycle"},
    {ONE(NODE("r", "Relu", "x") "," NODE("a", "Relu", "b") "," NODE("b", "Relu", "a")),
     "found a cycle through this node"},
    {ATTRS("Relu", "'alpha':1"), "found unknown key \"alpha\", wanted none"},
    {ATTRS("Conv", K2 ",'stride':[1,1]"), "nodes[0].attrs (node \"a\"): found unknown key"},
    {ATTRS("Conv", "'out_channels':4"), "attrs.kernel_shape (node \"a\"): found nothing"},
    {ATTRS("Conv", "'kernel_shape':[3,3]"), "attrs.out_channels (node \"a\"): found nothing"},
    {ATTRS("Conv", "'out_channels':4,'kernel_shape':[3]"), "found [3], wanted 2 integers"},
    {ATTRS("Conv", "'out_channels':4,'kernel_shape':[3,0]"), "attrs.kernel_shape"},
    {ATTRS("Conv", "'out_channels':4.0,'kernel_shape':[3,3]"), "attrs.out_channels"},
    {ATTRS("Conv", K2 ",'strides':[0,1]"), "nodes[0].attrs.strides (node \"a\"): found [0, 1]"},
    {ATTRS("Conv", K2 ",'dilations':[1,0]"), "attrs.dilations (node \"a\")"},
    {ATTRS("Conv", K2 ",'pads':[-1,0,0,0]"), "attrs.pads (node \"a\"): found [-1, 0, 0, 0]"},
    {ATTRS("Conv", K2 ",'pads':[1,1]"), "attrs.pads (node \"a\"): found [1, 1], wanted 4"},
    {ATTRS("Conv", K2 ",'bias':1"), "attrs.bias (node \"a\"): found 1, wanted true or false"},
    {ATTRS("Conv", K2 ",'group':3"), "found 3 groups, wanted a divisor of the input's 4 channels"},
    {ATTRS("Conv", "'out_channels':3,'kernel_shape':[1,1],'group':2"),
     "found 3 output channels, wanted a multiple of the 2 groups"},
    {ATTRS("Conv", "'out_channels':4,'kernel_shape':[9,9]"),
     "found a window of 9 (dilated) along H"},
    {ATTRS("Conv", K2 ",'dilations':[1,4]"), "found a window of 9 (dilated) along W"},
    {ATTRS("Conv", K2 ",'output_padding':[0,0]"), "unknown key \"output_padding\""},
    {ATTRS("Conv",
           "'out_channels':2000000000,'kernel_shape':[1,1],"
           "'pads':[2000000000,0,2000000000,0]"),
     "output: found shape"},
    {ATTRS("ConvTranspose", K2 ",'output_padding':[1,0]"),
     "attrs.output_padding (node \"a\"): found 1, wanted less than"},
    {ATTRS("ConvTranspose", K2 ",'pads':[5,0,5,0]"), "found an output extent of 0 along H"},
    {ATTRS("MaxPool", "'kernel_shape':[2,2],'pads':[2,0,0,0]"), "wanted less than the window's 2"},
    {ATTRS("MaxPool", "'kernel_shape':[2,2],'count_include_pad':true"), "unknown key"},
    {ATTRS("MaxPool", "'kernel_shape':[2,2],'ceil_mode':1"), "attrs.ceil_mode"},
    {ATTRS("Gemm", "'out_features':4"), "found an input of shape [N, 4, 8, 8], wanted rank 2"},
    {ATTRS("Clip", "'min':2,'max':1"), "attrs.min (node \"a\"): found 2, wanted at most max, 1"},
    {ATTRS("LeakyRelu", "'alpha':'x'"), "attrs.alpha (node \"a\"): found \"x\", wanted a number"},
    {ATTRS("BatchNormalization", "'epsilon':-1"), "attrs.epsilon"},
    {ATTRS("LRN", "'alpha':1"), "attrs.size (node \"a\"): found nothing"},
    {ATTRS("Softmax", "'axis':4"), "attrs.axis (node \"a\"): found 4, wanted from -4 to 3"},
    {ATTRS("Flatten", "'axis':2"), "found 2, wanted 1 where the batch is symbolic"},
    {ATTRS("Pad", "'pads':[0,0,1,1,0,0,1]"), "found 7 numbers, wanted two for each axis"},
    {ATTRS("Pad", "'pads':[0,0,1,1]"), "found 4 numbers for an input of rank 4, wanted 8"},
    {ATTRS("Pad", "'pads':[1,0,0,0,0,0,0,0]"), "found padding of a symbolic batch"},
    {ATTRS("Pad", "'pads':[0,0,8,0,0,0,0,0],'mode':'reflect'"), "found 8 and 0 on axis 2"},
    {ATTRS("Pad", "'pads':[0,0,-4,0,0,0,-4,0]"), "found -4 and -4 on axis 2"},
    {ATTRS("Pad", "'pads':[0,0,0,0,0,0,0,0],'mode':'mirror'"), "wanted one of \"constant\", \"ref"},
    {ATTRS("Reshape", "'axis':1"), "attrs.shape (node \"a\"): found nothing"},
    {ATTRS("Reshape", "'shape':['N',4,63]"), "found [N, 4, 63] for an input of shape [N, 4, 8, 8]"},
    {ATTRS("Reshape", "'shape':[4,'N',64]"), "attrs.shape"},
    {ATTRS("Reshape", "'shape':[256]"), "wanted the symbolic batch \"N\" first"},
    {ATTRS("Transpose", "'perm':[0,1,2]"), "found 3 axes of a tensor of 4"},
    {ATTRS("Transpose", "'perm':[0,1,1,2]"), "or one twice"},
    {ATTRS("Transpose", "'perm':[1,0,2,3]"), "found 1 first, wanted 0, the symbolic batch"},
    {ATTRS("Transpose", "'perm':[0,2,1],'input_shape':['N',4,64]"),
     "found [N, 4, 64], wanted one whose axes split those of [N, 4, 8, 8]"},
    {ATTRS("Transpose", "'perm':[0,2,3,1],'output_shape':['N',16,16]"),
     "found [N, 16, 16], wanted one whose axes merge those of [N, 8, 8, 4]"},
    {ATTRS("Slice", "'starts':[1],'ends':[2],'axes':[1,2]"), "found 1 starts, 1 ends, 2 axes"},
    {ATTRS("Slice", "'starts':[0],'ends':[1],'axes':[0]"), "found axis 0 of a symbolic batch"},
    {ATTRS("Slice", "'starts':[3],'ends':[3],'axes':[1]"), "found 3 to 3, which is nothing"},
    {ATTRS("Slice", "'starts':[0,0],'ends':[1,1],'axes':[1,-3]"), "found 1 twice"},
    {ATTRS("Slice", "'starts':[0],'ends':[1],'axes':[1],'steps':[0]"), "attrs.steps"},
    {ATTRS("Resize", "'sizes':[0,4]"), "attrs.sizes"},
    {ATTRS("Resize", "'sizes':[4,4],'scales':[1.5,0]"), "attrs.scales"},
    {ATTRS("Resize", "'sizes':[4,4],'antialias':1"), "attrs.antialias"},
    {ATTRS("Resize", "'sizes':[4,4],'scales':[1,0.06],'mode':'linear','antialias':true"),
     "attrs.scales (node \"a\"): found 0.06 for 8 elements with antialias"},
    {ATTRS("Resize", "'sizes':[4,4],'mode':'area'"), "found \"area\", wanted one of \"nearest\""},
    {ONE("{'name':'a','op':'Concat','inputs':['x','x'],'attrs':{'axis':0}}"),
     "found axis 0 of a symbolic batch"},
    {ONE("{'name':'a','op':'Concat','inputs':['x','x']}"),
     "attrs.axis (node \"a\"): found nothing"},
    {ONE(NODE("p", "GlobalAveragePool", "x") "," CONCAT("a", "'x','p'")),
     "found shapes [N, 4, 8, 8] and [N, 4, 1, 1] (input 1), wanted equal ones except axis 1"},
    {ONE("{'name':'p','op':'MaxPool','inputs':['x'],'attrs':{'kernel_shape':[2,2]}},"
         "{'name':'a','op':'Add','inputs':['x','p']}"),
     "found shapes [N, 4, 8, 8] and [N, 4, 7, 7], wanted ones that broadcast"},
    {ONE("{'name':'a','op':'Sub','inputs':['x']}"),
     "found 1 inputs without attrs.operand, wanted 2, or one and attrs.operand for Sub"},
    {ONE("{'name':'a','op':'Pow','inputs':['x','x'],'attrs':{'operand':[1]}}"),
     "found 2 inputs and attrs.operand, wanted one for Pow"},
    {ATTRS("Add", "'operand':[3,1,1]"), "found shapes [N, 4, 8, 8] and [3, 1, 1], wanted ones"},
    {ATTRS("Add", "'operand':[2,4,1,1]"), "found shapes [N, 4, 8, 8] and [2, 4, 1, 1]"},
    {ATTRS("Add", "'operand':[2,1,4,8,8]"), "the batch on the first"},
    {ATTRS("Add", "'operand':[]"), "attrs.operand (node \"a\"): found [], wanted a list of 1 to 8"},
    {ATTRS("Add", "'operand':[4,0,1]"), "attrs.operand (node \"a\"): found [4, 0, 1]"},
    {ATTRS("Add", "'operand_first':true"), "found true without operand"},
    {ATTRS("PRelu", "'operand':[4,1,1],'operand_first':true"), "in the first place"},
    {ONE(NODE("p", "GlobalAveragePool", "x") ",{'name':'a','op':'PRelu','inputs':['p','x']}"),
     "found shape [N, 4, 1, 1] and a slope of [N, 4, 8, 8], wanted one that broadcasts to"},
    {ATTRS("ReduceSum", "'axes':[0]"), "found axis 0 of a symbolic batch"},
    {ATTRS("ReduceSum", "'keepdims':false"), "found axis 0 of a symbolic batch"},
    {ATTRS("ReduceSum", "'axes':[1,-3]"), "attrs.axes (node \"a\"): found 1 twice"},
    {ATTRS("ReduceSum", "'axes':[4]"), "found 4, wanted from -4 to 3"},
    {"{'schema':'convsched.graph/1','name':'g','inputs':[{'name':'x','shape':[2,3]}],'nodes':["
     "{'name':'a','op':'ReduceMin','inputs':['x'],'attrs':{'keepdims':false}}],'outputs':['a']}",
     "attrs.keepdims (node \"a\"): found false for all 2 axes"},
    {ATTRS("ReduceMax", "'axes':[]"), "found [], wanted a list of 1 to 8 integers from -8 to 7"},
    {ATTRS("HardSwish", "'alpha':1"), "wanted none (the operator has no attributes)"},
};

static void test_bad_documents(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad_documents / sizeof *bad_documents; i++) {
    cs_graph *graph = NULL;
    cs_status status = parse(bad_documents[i].text, &graph);
    if (status == CS_OK) print_error("accepted: %s\n", bad_documents[i].text);
    assert_fails(status, CS_CODE_BAD_INPUT, bad_documents[i].part);
    assert_null(graph);
  }
}

static void test_deep_nesting(void **state) {
  (void)state;
  size_t depth = 100000;
  char *text = malloc(depth);
  memset(text, '[', depth);
  cs_graph *graph = NULL;
  assert_fails(cs_graph_parse(text, depth, "deep.json", &graph), CS_CODE_BAD_INPUT,
               "deep.json: line 1, column 2049: maximum parsing depth reached");
  free(text);
}

static void test_missing_file(void **state) {
  (void)state;
  cs_graph *graph = NULL;
  assert_fails(cs_graph_load("/nonexistent/g.json", &graph), CS_CODE_IO, "/nonexistent/g.json");
  assert_fails(cs_graph_load("/nonexistent/g.onnx", &graph), CS_CODE_BAD_INPUT, "cs_graph_import");
}

static void test_huge_file(void **state) {
  (void)state;
  char path[] = "/tmp/cs_graph_XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(ftruncate(file, ((off_t)256 << 20) + 1), 0);
  close(file);
  cs_graph *graph = NULL;
  assert_fails(cs_graph_load(path, &graph), CS_CODE_BAD_INPUT, path);
  unlink(path);
}

static void test_good_document(void **state) {
  (void)state;
  cs_graph *graph = NULL;
  /* Out of order on purpose; the order of independent nodes stays as written. */
  assert_ok(parse(HEAD INPUT
                  "'nodes':[" CONCAT("cat", "'r','c'") "," NODE("r", "Relu", "c") "," CONV(
                      "c", "x", "6", "3") "],'outputs':['cat','r'],'weights':'w/t.st'}",
                  &graph));
  assert_string_equal(cs_graph_name(graph), "t");
  assert_int_equal(cs_graph_input_count(graph), 1);
  assert_int_equal(cs_graph_output_count(graph), 2);
  assert_string_equal(cs_graph_input_name(graph, 0), "x");
  assert_string_equal(cs_graph_output_name(graph, 1), "r");
  assert_null(cs_graph_output_name(graph, 2));
  assert_string_equal(graph->weights_path, "w/t.st");
  assert_string_equal(graph->nodes[0].name, "c");
  assert_string_equal(graph->nodes[1].name, "r");
  assert_string_equal(graph->nodes[2].name, "cat");
  int64_t dims[8];
  assert_int_equal(cs_graph_input_shape(graph, 0, dims), 4);
  assert_int_equal(dims[0], CS_DIM_N);
  assert_int_equal(cs_graph_output_shape(graph, 0, dims), 4);
  assert_int_equal(dims[1], 12);
  assert_int_equal(dims[2], 6);
  /* 6·4·3·3 weights and 6 biases. */
  assert_int_equal(cs_graph_parameter_count(graph), 222);
  cs_graph_destroy(graph);
}

static void test_weights_beside_the_file(void **state) {
  (void)state;
  const char text[] =
      "{\"schema\":\"convsched.graph/"
      "1\",\"name\":\"t\",\"inputs\":[{\"name\":\"x\",\"shape\":[1]}],"
      "\"nodes\":[{\"name\":\"a\",\"op\":\"Relu\",\"inputs\":[\"x\"]}],\"outputs\":[\"a\"],"
      "\"weights\":\"w.safetensors\"}";
  cs_graph *graph = NULL, *again = NULL;
  assert_ok(cs_graph_parse(text, sizeof text - 1, "some/folder/g.json", &graph));
  assert_string_equal(graph->weights_path, "some/folder/w.safetensors");
  char *json = NULL;
  assert_ok(cs_graph_to_json(graph, &json));
  assert_ok(cs_graph_parse(json, strlen(json), "some/folder/g.json", &again));
  assert_string_equal(again->weights_path, "some/folder/w.safetensors");
  free(json);
  cs_graph_destroy(graph);
  cs_graph_destroy(again);
}

static const char every_operator[] =
    "{'name':'conv','op':'Conv','inputs':['x'],'attrs':{'out_channels':8,'kernel_shape':[3,2],"
    "'strides':[1,2],'pads':[1,0,2,1],'dilations':[2,1],'group':2,'bias':false}},"
    "{'name':'deconv','op':'ConvTranspose','inputs':['conv'],'attrs':{'out_channels':4,"
    "'kernel_shape':[3,3],'strides':[2,2],'output_padding':[1,0]}},"
    "{'name':'bn','op':'BatchNormalization','inputs':['deconv'],'attrs':{'epsilon':0.001}},"
    "{'name':'leaky','op':'LeakyRelu','inputs':['bn'],'attrs':{'alpha':0.1}},"
    "{'name':'clip','op':'Clip','inputs':['leaky'],'attrs':{'min':0,'max':6}},"
    "{'name':'sig','op':'Sigmoid','inputs':['clip']},{'name':'tanh','op':'Tanh','inputs':['sig']},"
    "{'name':'add','op':'Add','inputs':['tanh','sig']},{'name':'mul','op':'Mul','inputs':['add',"
    "'clip']},{'name':'maxpool','op':'MaxPool','inputs':['mul'],'attrs':{'kernel_shape':[3,3],"
    "'strides':[2,2],'ceil_mode':true}},"
    "{'name':'avgpool','op':'AveragePool','inputs':['maxpool'],'attrs':{'kernel_shape':[2,2],"
    "'count_include_pad':true,'pads':[1,1,0,0]}},"
    "{'name':'lrn','op':'LRN','inputs':['avgpool'],'attrs':{'size':5,'alpha':0.0003}},"
    "{'name':'pad','op':'Pad','inputs':['lrn'],'attrs':{'pads':[0,1,2,3,0,0,1,0],'value':-0.5}},"
    "{'name':'drop','op':'Dropout','inputs':['pad']},{'name':'same','op':'Identity','inputs':"
    "['drop']},{'name':'cat','op':'Concat','inputs':['same','pad'],'attrs':{'axis':-3}},"
    "{'name':'relu','op':'Relu','inputs':['cat']},"
    "{'name':'gap','op':'GlobalAveragePool','inputs':['relu']},"
    "{'name':'flat','op':'Flatten','inputs':['gap']},"
    "{'name':'fc','op':'Gemm','inputs':['flat'],'attrs':{'out_features':3}},"
    "{'name':'soft','op':'Softmax','inputs':['fc']}";

/* Those that came later: the hash of the ones above stays as it is. */
static const char later_operators[] =
    "{'name':'add','op':'Add','inputs':['x'],'attrs':{'operand':[1,4,1,16]}},"
    "{'name':'sub','op':'Sub','inputs':['add'],'attrs':{'operand':[4,1,1],'operand_first':true}},"
    "{'name':'div','op':'Div','inputs':['sub'],'attrs':{'operand':[1]}},"
    "{'name':'max','op':'Max','inputs':['div','sub']},"
    "{'name':'min','op':'Min','inputs':['max','div']},"
    "{'name':'pow','op':'Pow','inputs':['min','max']},"
    "{'name':'prelu','op':'PRelu','inputs':['pow'],'attrs':{'operand':[4,1,1]}},"
    "{'name':'elu','op':'Elu','inputs':['prelu'],'attrs':{'alpha':0.5}},"
    "{'name':'selu','op':'Selu','inputs':['elu'],'attrs':{'gamma':2}},"
    "{'name':'hsig','op':'HardSigmoid','inputs':['selu'],'attrs':{'beta':0.25}},"
    "{'name':'hswish','op':'HardSwish','inputs':['hsig']},"
    "{'name':'swish','op':'Swish','inputs':['hswish'],'attrs':{'alpha':1.5}},"
    "{'name':'sqrt','op':'Sqrt','inputs':['swish']},{'name':'abs','op':'Abs','inputs':['sqrt']},"
    "{'name':'neg','op':'Neg','inputs':['abs']},{'name':'exp','op':'Exp','inputs':['neg']},"
    "{'name':'plus','op':'Softplus','inputs':['exp']},{'name':'erf','op':'Erf','inputs':['plus']},"
    "{'name':'gelu','op':'Gelu','inputs':['erf']},"
    "{'name':'norm','op':'InstanceNormalization','inputs':['gelu'],'attrs':{'epsilon':0.01}},"
    "{'name':'gmax','op':'GlobalMaxPool','inputs':['norm']},"
    "{'name':'mean','op':'ReduceMean','inputs':['gmax'],'attrs':{'axes':[1]}},"
    "{'name':'rsum','op':'ReduceSum','inputs':['mean'],'attrs':{'axes':[-1],'keepdims':false}},"
    "{'name':'rmax','op':'ReduceMax','inputs':['rsum'],'attrs':{'axes':[2]}},"
    "{'name':'rmin','op':'ReduceMin','inputs':['rmax'],'attrs':{'axes':[2,1],'keepdims':false}}";

static const char *const movements =
    "{'name':'to','op':'Reshape','inputs':['x'],'attrs':{'shape':['N',8,32,4]}},"
    "{'name':'t','op':'Transpose','inputs':['to'],'attrs':{'perm':[0,3,2,1]}},"
    "{'name':'shuffle','op':'Transpose','inputs':['x'],'attrs':{'perm':[0,2,1,3,4],"
    "'input_shape':['N',2,2,16,16],'output_shape':['N',4,16,16]}},"
    "{'name':'s','op':'Slice','inputs':['shuffle'],'attrs':{'starts':[-1,1],'ends':[-99,3],"
    "'axes':[2,-3],'steps':[-3,1]}},"
    "{'name':'pad','op':'Pad','inputs':['s'],'attrs':{'pads':[0,0,1,2,0,0,0,-1],'mode':'reflect'}},"
    "{'name':'near','op':'Resize','inputs':['pad'],'attrs':{'sizes':[9,9],'nearest_mode':'ceil'}},"
    "{'name':'crop','op':'Resize','inputs':['near'],'attrs':{'sizes':[4,5],'mode':'linear',"
    "'coordinate_transformation_mode':'tf_crop_and_resize','roi':[0,0.5,1,1.5],"
    "'extrapolation_value':3}},"
    "{'name':'cubic','op':'Resize','inputs':['crop'],'attrs':{'sizes':[8,3],'mode':'cubic',"
    "'scales':[2.25,0.75],'cubic_coeff_a':-0.5,'exclude_outside':true}},"
    "{'name':'wide','op':'Resize','inputs':['cubic'],'attrs':{'sizes':[4,3],'mode':'linear',"
    "'antialias':true}},"
    "{'name':'tf','op':'Resize','inputs':['wide'],'attrs':{'sizes':[2,5],'nearest_mode':'floor',"
    "'coordinate_transformation_mode':'tf_half_pixel_for_nn'}}";

static void round_trip(const char *nodes, const char *output) {
  cs_graph *graph = graph_of("'N',4,16,16", nodes, output), *again = NULL;
  char *json = NULL, *twice = NULL;
  assert_ok(cs_graph_to_json(graph, &json));
  assert_ok(cs_graph_parse(json, strlen(json), "t.json", &again));
  assert_true(cs_graph_hash(graph) == cs_graph_hash(again));
  assert_ok(cs_graph_to_json(again, &twice));
  assert_string_equal(json, twice);
  free(json);
  free(twice);
  cs_graph_destroy(graph);
  cs_graph_destroy(again);
}

static void test_round_trip(void **state) {
  (void)state;
  round_trip(every_operator, "'soft'");
  round_trip(later_operators, "'rmin'");
  round_trip(movements, "'tf'");
}

/* A hash that changes makes every stored plan stale: this number may change only on purpose. */
static void test_hash_is_stable(void **state) {
  (void)state;
  cs_graph *graph = graph_of("'N',4,16,16", every_operator, "'soft'");
  cs_graph *other = graph_of("'N',4,16,16", NODE("a", "Relu", "x"), "'a'");
  cs_graph *renamed = graph_of("'N',4,16,16", NODE("b", "Relu", "x"), "'b'");
  cs_graph *bound = NULL;
  assert_ok(cs_graph_bind(other, 3, &bound));
  assert_int_equal(cs_graph_hash(graph), UINT64_C(0x77fd94a632b4b912));
  assert_true(cs_graph_hash(other) != cs_graph_hash(renamed));
  assert_true(cs_graph_hash(other) != cs_graph_hash(bound));
  cs_graph_destroy(graph);
  cs_graph_destroy(other);
  cs_graph_destroy(renamed);
  cs_graph_destroy(bound);
}

/* Each attribute alone changes the hash. */
static void test_hash_sees_attributes(void **state) {
  (void)state;
  const char *const nodes[] = {
      "{'name':'a','op':'Conv','inputs':['x'],'attrs':{" K2 "}}",
      "{'name':'a','op':'Conv','inputs':['x'],'attrs':{" K2 ",'bias':false}}",
      "{'name':'a','op':'Conv','inputs':['x'],'attrs':{" K2 ",'pads':[1,0,1,0]}}",
      "{'name':'a','op':'Conv','inputs':['x'],'attrs':{" K2 ",'pads':[0,1,0,1]}}",
      "{'name':'a','op':'Conv','inputs':['x'],'attrs':{" K2 ",'group':2}}",
      "{'name':'a','op':'Sub','inputs':['x'],'attrs':{'operand':[4,1,1]}}",
      "{'name':'a','op':'Sub','inputs':['x'],'attrs':{'operand':[1,8,1]}}",
      "{'name':'a','op':'Sub','inputs':['x'],'attrs':{'operand':[4,1,1],'operand_first':true}}",
      "{'name':'a','op':'BatchNormalization','inputs':['x']}",
      "{'name':'a','op':'BatchNormalization','inputs':['x'],'attrs':{'epsilon':0.002}}"};
  enum { COUNT = sizeof nodes / sizeof *nodes };
  uint64_t hashes[COUNT];
  for (int i = 0; i < COUNT; i++) {
    cs_graph *graph = graph_of("'N',4,8,8", nodes[i], "'a'");
    hashes[i] = cs_graph_hash(graph);
    for (int k = 0; k < i; k++) assert_true(hashes[k] != hashes[i]);
    cs_graph_destroy(graph);
  }
}

static void test_bind(void **state) {
  (void)state;
  cs_graph *graph = graph_of("'N',4,16,16", every_operator, "'soft'"), *bound = NULL;
  assert_int_equal(graph->batch, CS_DIM_N);
  assert_ok(cs_graph_bind(graph, 7, &bound));
  assert_int_equal(bound->batch, 7);
  for (int i = 0; i < bound->n_values; i++) assert_int_equal(bound->values[i].shape.dims[0], 7);
  assert_shape(bound, "soft", 2, (int64_t[]){7, 3});
  cs_graph *again = NULL;
  assert_fails(cs_graph_bind(bound, 8, &again), CS_CODE_BAD_INPUT, "found batch 8, wanted 7");
  assert_fails(cs_graph_bind(graph, 0, &again), CS_CODE_BAD_INPUT, "found batch 0");
  assert_fails(cs_graph_bind(graph, -1, &again), CS_CODE_BAD_INPUT, "found batch -1");
  assert_fails(cs_graph_bind(graph, INT64_C(1) << 40, &again), CS_CODE_BAD_INPUT, "found batch");
  cs_graph_destroy(graph);
  cs_graph_destroy(bound);
  graph = graph_of("'N',2000000000,1000,1", NODE("a", "Relu", "x"), "'a'");
  assert_fails(cs_graph_bind(graph, 2000000000, &again), CS_CODE_BAD_INPUT,
               "input \"x\" at batch 2000000000: found shape");
  cs_graph_destroy(graph);
}

static void test_params(void **state) {
  (void)state;
  cs_graph *graph = graph_of("'N',4,16,16", every_operator, "'soft'");
  cs_param *params = NULL;
  int n = 0;
  assert_ok(cs_graph_params(graph, &params, &n));
  const char *const names[] = {"conv.weight",    "deconv.weight", "deconv.bias",
                               "bn.weight",      "bn.bias",       "bn.running_mean",
                               "bn.running_var", "fc.weight",     "fc.bias"};
  assert_int_equal(n, 9);
  for (int i = 0; i < n; i++) {
    assert_string_equal(params[i].name, names[i]);
    assert_int_equal(params[i].trainable, i != 5 && i != 6);
  }
  /* PyTorch: Conv [K, C/g, R, S], ConvTranspose [C, K/g, R, S], Linear [out, in]. */
  cs_shape conv = {4, {8, 2, 3, 2}}, deconv = {4, {8, 4, 3, 3}}, fc = {2, {3, 10}};
  assert_true(cs_shape_equal(&params[0].shape, &conv));
  assert_true(cs_shape_equal(&params[1].shape, &deconv));
  assert_true(cs_shape_equal(&params[7].shape, &fc));
  cs_params_free(params, n);
  assert_int_equal(cs_graph_parameter_count(graph), 96 + 288 + 4 + 4 + 4 + 30 + 3);
  cs_graph_destroy(graph);
}

static void test_params_of_operands(void **state) {
  (void)state;
  cs_graph *graph = graph_of("'N',4,16,16", later_operators, "'rmin'");
  cs_param *params = NULL;
  int n = 0;
  assert_ok(cs_graph_params(graph, &params, &n));
  const char *const names[] = {"add.weight",   "sub.weight",  "div.weight",
                               "prelu.weight", "norm.weight", "norm.bias"};
  const cs_shape shapes[] = {{4, {1, 4, 1, 16}}, {3, {4, 1, 1}}, {1, {1}},
                             {3, {4, 1, 1}},     {1, {4}},       {1, {4}}};
  assert_int_equal(n, 6);
  for (int i = 0; i < n; i++) {
    assert_string_equal(params[i].name, names[i]);
    assert_true(cs_shape_equal(&params[i].shape, &shapes[i]));
  }
  assert_int_equal(cs_graph_parameter_count(graph), 64 + 4 + 1 + 4 + 8);
  cs_params_free(params, n);
  cs_graph_destroy(graph);
}

static void test_builder(void **state) {
  (void)state;
  cs_builder *builder = NULL;
  cs_graph *graph = NULL;
  const char *x = "x", *c = "c";
  assert_ok(cs_builder_create("built", &builder));
  assert_ok(cs_builder_input(builder, "x", 4, (int64_t[]){CS_DIM_N, 4, 8, 8}));
  assert_ok(
      cs_builder_node(builder, "c", "Conv", 1, &x, "{\"out_channels\":6,\"kernel_shape\":[3,3]}"));
  assert_ok(cs_builder_node(builder, "r", "Relu", 1, &c, NULL));
  assert_fails(cs_builder_node(builder, "s", "Relu", 1, &c, "{"), CS_CODE_BAD_INPUT,
               "built: node \"s\": attributes, line 1");
  assert_fails(cs_builder_input(builder, "z", 9, (int64_t[9]){1}), CS_CODE_USAGE, "found rank 9");
  assert_ok(cs_builder_output(builder, "r"));
  assert_ok(cs_builder_finish(builder, &graph));
  assert_shape(graph, "r", 4, (int64_t[]){CS_DIM_N, 6, 6, 6});
  cs_graph *same =
      graph_of("'N',4,8,8", CONV("c", "x", "6", "3") "," NODE("r", "Relu", "c"), "'r'");
  assert_true(cs_graph_hash(graph) == cs_graph_hash(same));
  cs_graph_destroy(graph);
  cs_graph_destroy(same);
  assert_ok(cs_builder_create("bad", &builder));
  assert_ok(cs_builder_input(builder, "x", 1, (int64_t[]){4}));
  assert_ok(cs_builder_node(builder, "a", "Nope", 1, &x, NULL));
  assert_ok(cs_builder_output(builder, "a"));
  assert_fails(cs_builder_finish(builder, &graph), CS_CODE_BAD_INPUT,
               "bad: nodes[0].op (node \"a\"): found \"Nope\"");
  cs_builder_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bad_documents),
      cmocka_unit_test(test_deep_nesting),
      cmocka_unit_test(test_missing_file),
      cmocka_unit_test(test_huge_file),
      cmocka_unit_test(test_good_document),
      cmocka_unit_test(test_weights_beside_the_file),
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_hash_is_stable),
      cmocka_unit_test(test_hash_sees_attributes),
      cmocka_unit_test(test_bind),
      cmocka_unit_test(test_params),
      cmocka_unit_test(test_params_of_operands),
      cmocka_unit_test(test_builder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
